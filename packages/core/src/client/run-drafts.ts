import { decodeValue, type Environment, InvalidOptionError, type Json } from '../base'
import { type Engine, jobOf, noJob, recorded } from '../engine'
import { type EventInput, type JobDefinition, namedJob, type TriggerOptions } from '../job'
import type { AuditNote, EventTemplate, NewRun } from '../port'
import { type Actor, notedBy } from './acting'
import { refuseGathering } from './debounce'
import { newRunOf, newRunOfEncoded } from './trigger'

/** A run as it is before it is created: what `trigger()` makes of a job, a payload and options. */
export type RunDraft = Omit<NewRun, 'id' | 'events'>

/** When and how it runs. */
export type DraftOptions = Omit<TriggerOptions, 'transaction' | 'debounce' | 'batch'>

/** For packages that create runs in writes of their own: what `trigger()` does before and after its write. */
export interface RunDrafts {
  readonly environment: Environment
  /** To be awaited between two pieces of work, so that the rest of the process gets its turn. */
  breathe(): Promise<void> | undefined
  /** Checked and encoded; nothing is stored. A name has to be one of this instance's jobs, a schema has to answer at once. */
  draft(job: string | { readonly name: string }, payload: unknown, options?: DraftOptions): RunDraft
  /** As `draft`, of a payload that was encoded before; it is not checked again, nor need the job be known. */
  draftEncoded(jobName: string, payload: Json | null, options?: DraftOptions): RunDraft
  /** A run to be created, with an id of its own and the events that are kept of it. */
  run(draft: RunDraft): NewRun
  /** What is to be kept of an event, with the write that it tells of. */
  recorded(event: EventInput): readonly EventTemplate[]
  /** What a write carries when somebody said who does it. */
  noted(action: string, as: Actor | undefined): { readonly audit?: AuditNote }
  /** The jobs that this instance executes. */
  jobs(): readonly JobDefinition[]
  /** Tells of runs that were created, and has the worker look for them. */
  announce(created: readonly NewRun[]): void
}

export function createRunDrafts(engine: Engine, onCreated: () => void): RunDrafts {
  const { environment, events } = engine
  return {
    environment,
    breathe: engine.breathe,
    draft(given, payload, options = {}) {
      const isKnown = typeof given !== 'string' || engine.jobs.has(given) || engine.declared.has(given)
      const job = isKnown ? jobOf(engine, given) : null
      if (job === null) throw noJob(Object(given).name ?? given)
      refuseGathering(options)
      const run = newRunOf(engine, { job, payload, options })
      if (!(run instanceof Promise)) return run
      // Refused whatever it answers.
      run.catch(() => {})
      throw new InvalidOptionError(`The schema of job "${job.name}" answers later. Here it has to answer at once.`)
    },
    draftEncoded(jobName, payload, options = {}) {
      refuseGathering(options)
      return newRunOfEncoded({ engine, job: jobOf(engine, jobName) ?? namedJob(jobName), payload, options })
    },
    run: (draft) => ({
      ...draft,
      id: environment.createId(),
      events: recorded(engine, { type: 'run:trigger', runId: '', jobName: draft.jobName, payload: null }),
    }),
    recorded: (event) => recorded(engine, event),
    noted: (action, as) => notedBy(engine, action, as),
    jobs: () => [...engine.jobs.values()],
    announce(created) {
      for (const { id: runId, jobName, payload } of created) {
        events.emit({ type: 'run:trigger', runId, jobName, payload: decodeValue(payload) })
      }
      if (created.length > 0) onCreated()
    },
  }
}
