import {
  ConflictError,
  decodeValue,
  encodeValue,
  InvalidOptionError,
  isEnded,
  type Json,
  NotFoundError,
  type OptionNames,
  parseWith,
  refuseUnknownOptions,
} from '../base'
import type { Engine } from '../engine'
import { namedJob, type Run, toRun } from '../job'
import { capability, type NewRun, type RunRecord, type StepRecord } from '../port'
import { type Actor, type CommandOptions, notedBy } from './acting'
import { isId } from './runs'
import { announceCreated, newRunOfEncoded } from './trigger'

/** From where a run is done again, and with what. */
export interface ForkOptions extends CommandOptions {
  /**
   * The name of a completed step: it and the completed steps before it are kept, and the new run goes on after them. Default:
   * from the beginning.
   */
  readonly after?: string | undefined
  /** Default: that of the run. */
  readonly payload?: unknown
}

/** Doing a run again as another run. */
export interface RunForks {
  /**
   * A new run of the same job that begins with completed steps of this one, and with another payload if one is given. The run
   * itself stays as it is, in whichever state; `forkedFrom` of the new one names it.
   */
  fork(id: string, options?: ForkOptions): Promise<Run>
}

export interface RunForksParams {
  readonly engine: Engine
  /** Everything is limited to this tenant. */
  readonly tenant?: string | undefined
  /** Who does it, where a call does not say. */
  readonly as?: Actor | undefined
  readonly onForked: () => void
}

const FORK_OPTIONS: OptionNames<ForkOptions> = { after: true, payload: true, as: true }

export function createForks({ engine, tenant, as, onForked }: RunForksParams): RunForks {
  const { storage } = engine
  const scope = tenant === undefined ? {} : { tenant }
  return {
    async fork(id, options = {}) {
      refuseUnknownOptions('fork()', options, FORK_OPTIONS)
      const forks = capability(storage, 'forks', 'fork()')
      const origin = isId(id) ? await storage.getRun(id, scope) : null
      if (origin === null) throw NotFoundError.run(String(id))
      const kept = stepsUpTo(origin, await storage.getSteps(origin.id, scope), options.after)
      await refuseOpenChildren(engine, origin, kept)
      const payload = options.payload === undefined ? origin.payload : await payloadOf(engine, origin, options.payload)
      const run = await forks.fork({
        run: newRunLike(engine, origin, payload),
        originId: origin.id,
        steps: kept.map((step) => ({ id: step.id, copyId: engine.environment.createId() })),
        ...notedBy(engine, 'fork', options.as ?? as),
      })
      if (run === null) throw NotFoundError.run(origin.id)
      announceCreated(engine, run)
      onForked()
      return toRun(run)
    },
  }
}

function stepsUpTo(origin: RunRecord, steps: readonly StepRecord[], after: string | undefined): readonly StepRecord[] {
  if (after === undefined) return []
  const completed = steps.filter(({ status }) => status === 'completed')
  const last = completed.find(({ name }) => name === after)
  if (last !== undefined) return completed.filter(({ index }) => index <= last.index)
  throw new InvalidOptionError(`Run ${origin.id} has no completed step "${String(after)}" after which it could go on.`)
}

/** Who is not their parent would not hear of their end. */
async function refuseOpenChildren({ storage }: Engine, origin: RunRecord, kept: readonly StepRecord[]): Promise<void> {
  const ids = kept.flatMap(({ kind, output }) => (kind === 'trigger' || kind === 'triggerAll' ? idsIn(output) : []))
  if (ids.length === 0) return
  const open = (await storage.getRuns({ ids })).find(({ status }) => !isEnded(status))
  if (open === undefined) return
  throw new ConflictError(
    `Run ${origin.id} has triggered run ${open.id}, which is ${open.status}: fork() it when that has ended, or from a step before.`,
    open.id,
    open.status,
  )
}

function idsIn(output: Json | null): readonly string[] {
  return [decodeValue(output)].flat().filter(isId)
}

async function payloadOf({ jobs, declared }: Engine, { jobName }: RunRecord, payload: unknown): Promise<Json | null> {
  const what = `The payload of job "${jobName}"`
  const job = jobs.get(jobName) ?? declared.get(jobName)
  const { value } = job === undefined ? { value: payload } : await parseWith(job.input, payload, what)
  return encodeValue(value, what)
}

/** Steps of one version are for code of that version. */
function newRunLike(engine: Engine, origin: RunRecord, payload: Json | null): NewRun {
  const { jobName, jobVersion: version, timeoutMs } = origin
  const { tenant, labels, concurrencyLimit, holdKeyWhileWaiting, priority } = origin
  return newRunOfEncoded({
    engine,
    job: { ...namedJob(jobName), version, timeoutMs },
    payload,
    options: {
      ...{ tenant, labels, concurrencyLimit, holdKeyWhileWaiting, priority },
      concurrencyKey: origin.concurrencyKey ?? undefined,
    },
  })
}
