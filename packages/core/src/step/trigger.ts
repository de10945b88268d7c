import { type ChildOptions, type ChildRun, type EventInput, type JobDeclaration, TRIGGER_OPTIONS } from '../job'
import { type CtxCall, openCall } from './call'
import { type Engine, jobOf, type NamedJob } from '../engine'
import { decodeValue, InvalidOptionError, refuseUnknownOptions } from '../base'
import { commitOrFail, replayFailure } from './failure'
import { elapsedMs, idsOf, newRow } from './row'
import { newRunOf } from '../client'

const {
  tenant: _tenant,
  onConflict: _onConflict,
  transaction: _transaction,
  debounce: _debounce,
  batch: _batch,
  ...CHILD_OPTIONS
} = TRIGGER_OPTIONS
export { CHILD_OPTIONS }

export interface TriggerStepParams {
  readonly call: CtxCall
  readonly job: { readonly name: string }
  readonly payload: unknown
  readonly options: ChildOptions
}

/** `ctx.trigger`: the run is created in the commit of the step, so there is one however often the step starts. */
export function triggerStep({ call, job, payload, options }: TriggerStepParams): Promise<ChildRun> {
  return openCall(call, 'trigger', async (index) => {
    const { scope, name } = call
    const { engine, run } = scope
    const before = scope.recorded.get(name)
    if (before?.status === 'completed') return childOf(job, decodeValue(before.output))
    replayFailure(scope, name, false)
    refuseBadChild(`ctx.trigger("${name}")`, options, CHILD_OPTIONS)
    const definition = knownJob(engine, job, `ctx.trigger("${name}")`)
    const own = { tenant: run.tenant, onConflict: 'return' } as const
    const item = { job: definition, payload, options: { ...options, ...own } }
    const child = { ...(await newRunOf(engine, item)), parentRunId: run.id }
    // A schema may take its time.
    if (scope.interruption.reason() !== null) throw scope.interruption.cause()
    const row = newRow({ scope, name, index, kind: 'trigger', before })
    const event: EventInput = { type: 'step:complete', ...idsOf(row), output: child.id, duration: elapsedMs(row) }
    const { seq, children, row: recorded } = await commitOrFail(row, 'completed', { child, event })
    const [id = child.id] = children
    scope.recorded.set(name, { ...recorded, output: JSON.stringify(id) })
    if (id === child.id) {
      engine.events.emit({ type: 'run:trigger', runId: id, jobName: job.name, payload: decodeValue(child.payload) })
    }
    engine.events.emit({ ...event, output: id }, seq)
    return childOf(job, id)
  })
}

export function refuseBadChild(call: string, options: ChildOptions, known: Readonly<Record<string, true>>): void {
  if (Object.hasOwn(Object(options), 'tenant')) {
    throw new InvalidOptionError(`${call} takes no tenant: a child belongs to the tenant of its parent.`)
  }
  refuseUnknownOptions(call, options, known)
}

function childOf({ name }: { readonly name: string }, id: unknown): ChildRun {
  return { id: String(id), jobName: name }
}

export function knownJob(engine: Engine, job: NamedJob, call: string): JobDeclaration {
  const known = jobOf(engine, job)
  if (known !== null) return known
  throw new InvalidOptionError(`${call}: this instance has no job "${String(job?.name)}".`)
}
