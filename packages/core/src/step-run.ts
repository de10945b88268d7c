import type { BodyScope } from './body-scope'
import { takeCallSite, type CallSite } from './call-site'
import { isWatched, type Engine } from './engine'
import {
  describeError,
  DuplicateStepError,
  InterruptedError,
  InvalidOptionError,
  NestedStepError,
  refuseBadText,
  StepError,
} from './errors'
import type { EventInput } from './events'
import type { Interruption } from './interruption'
import type { RunWriter } from './run-writer'
import type { Json, RunRecord, StepRecord, StepStatus } from './storage'
import { decodeValue, encodeValue } from './values'

/** How a step is run. */
export interface RunStepOptions {
  /**
   * At most once: the start is recorded before the body runs, and a start whose outcome was lost is an
   * `InterruptedError` in the job instead of a second run.
   */
  readonly once?: boolean | undefined
}

/** Writes log lines of a run. */
export interface StepLog {
  info(message: string, data?: unknown): void
  warn(message: string, data?: unknown): void
  error(message: string, data?: unknown): void
}

/** What the body of a step gets. */
export interface StepTools {
  /** Aborts when the run is cancelled, times out, is lost to another worker or has to stop here. */
  readonly signal: AbortSignal
  /** 1 at first; counts the recorded failures of this step. */
  readonly attempt: number
  /** What `save` stored last, also in an earlier process; `undefined` at first. */
  readonly checkpoint: unknown
  /** Stores where the body is, so that the next start can go on from there. */
  save(checkpoint: unknown): Promise<void>
  /** The same for every start of this step of this run: hand it to services that know idempotency keys. */
  readonly idempotencyKey: string
  readonly log: StepLog
  progress(current: number, total?: number, message?: string): void
}

/** The function that a step runs. */
export type StepBody<T> = (step: StepTools) => T | Promise<T>

/** A body in progress. */
export interface OpenBody {
  readonly scope: StepScope
  readonly stepName: string
}

export type RecordedStep = Pick<
  StepRecord,
  'id' | 'status' | 'attempt' | 'output' | 'error' | 'errorDetail' | 'checkpoint'
>

/** Names and order of one pass through the job function. */
export interface Pass {
  readonly names: Map<string, CallSite>
}

/** What the ctx calls of one execution share. */
export interface StepScope {
  readonly engine: Engine
  readonly run: RunRecord
  readonly writer: RunWriter
  readonly interruption: Interruption
  readonly bodyScope: BodyScope<OpenBody>
  /** Live rows by name: completed, or started and without an outcome. */
  readonly recorded: Map<string, RecordedStep>
  /** The last failed row of a name, as an execution before this one left it. */
  readonly failed: Map<string, RecordedStep>
  readonly failures: Map<string, number>
  /** ctx calls that have not settled, by index. */
  readonly openCalls: Map<number, { readonly stepName: string; readonly call: Promise<unknown> }>
  /** Bodies running, or settled and being recorded, by name. */
  readonly bodies: Map<string, Promise<unknown>>
  pass: Pass
  completedSteps: number
  /** The step that an error came out of, to tell which step a failed run failed in. */
  readonly stepOfError: Map<unknown, string>
  logFor(stepName: string | null): StepLog
  progress(current: number, total?: number, message?: string): void
}

interface StepCall<T> {
  readonly scope: StepScope
  readonly name: string
  readonly index: number
  readonly options: RunStepOptions
  readonly body: StepBody<T>
  readonly rowId: string
  checkpoint: Json | null
  readonly startedAt: number
  /** Until the body has settled. */
  isOpen: boolean
}

export interface RunStepParams<T> {
  readonly scope: StepScope
  readonly name: string
  readonly options: RunStepOptions
  readonly body: StepBody<T>
  readonly calledAt: (...args: never[]) => unknown
}

/** `ctx.run`: the recorded value, or the body's once it is recorded. */
export function runStep<T>({ scope, name, options, body, calledAt }: RunStepParams<T>): Promise<T> {
  if (scope.interruption.reason() !== null) return handled(scope.interruption.refuse())
  let index: number
  try {
    index = takeName(scope, name, calledAt)
  } catch (error) {
    return handled(Promise.reject(error))
  }
  const call = handled(replayOrRun({ scope, name, options, body, calledAt }, index))
  scope.openCalls.set(index, { stepName: name, call })
  const close = () => void scope.openCalls.delete(index)
  call.then(close, close)
  return call
}

/** What nobody awaits must not end the process when it fails; somebody else is told. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

function takeName(scope: StepScope, name: string, calledAt: (...args: never[]) => unknown): number {
  if (typeof name !== 'string' || name === '') throw new InvalidOptionError('A step needs a name that is not empty.')
  // A name that a database changes would not be found again.
  refuseBadText('The name of a step', name)
  const outer = scope.bodyScope.current()
  if (outer?.scope === scope) throw new NestedStepError(name, outer.stepName)
  const { names } = scope.pass
  const site = takeCallSite(calledAt)
  const first = names.get(name)
  if (first !== undefined) throw new DuplicateStepError(name, first.describe(), site.describe())
  names.set(name, site)
  return names.size - 1
}

async function replayOrRun<T>(params: RunStepParams<T>, index: number): Promise<T> {
  const { scope, name, options, body } = params
  // Only a plugin that runs the job function again gets here while the body of the pass before is running.
  const running = scope.bodies.get(name)
  if (running !== undefined) return joinBody(scope, running as Promise<T>)
  const before = scope.recorded.get(name)
  if (before?.status === 'completed') return decodeValue(before.output) as T
  const failed = scope.failed.get(name)
  if (failed !== undefined && failed.attempt === scope.run.attempt) {
    // A plugin may run the job again: then the body is tried anew, unless it may run only once.
    if (options.once !== true) scope.failed.set(name, { ...failed, attempt: NO_ATTEMPT })
    throw remember(scope, name, new StepError(name, failed.error ?? '', failed.errorDetail))
  }
  const call: StepCall<T> = {
    scope,
    name,
    index,
    options,
    body,
    rowId: before?.id ?? scope.engine.environment.createId(),
    checkpoint: before?.checkpoint ?? failed?.checkpoint ?? null,
    startedAt: scope.engine.environment.clock.monotonic(),
    isOpen: true,
  }
  const isLost = options.once === true && before?.status === 'started'
  const work = isLost ? recordFailure(call, new InterruptedError(name)) : runBody(call)
  scope.bodies.set(name, work)
  const remove = () => void scope.bodies.delete(name)
  work.then(remove, remove)
  return joinBody(scope, work)
}

/** What a body comes to is recorded even when its execution was interrupted meanwhile; the job does not see it then. */
async function joinBody<T>(scope: StepScope, work: Promise<T>): Promise<T> {
  const [settled] = await Promise.allSettled([work])
  if (scope.interruption.reason() !== null) return scope.interruption.refuse()
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}

async function runBody<T>(call: StepCall<T>): Promise<T> {
  const { scope, name, index } = call
  const start: EventInput = { type: 'step:start', ...ids(call) }
  scope.writer.ride(start)
  if (call.options.once === true) await commitStart(call)
  scope.engine.events.emit(start)
  let output: Json | null
  try {
    const info = { ...ids(call), signal: scope.interruption.signal }
    const next = async () => {
      // A plugin may have taken its time.
      if (scope.interruption.reason() !== null) throw scope.interruption.cause()
      return call.body(toolsFor(call))
    }
    const value = await scope.bodyScope.run({ scope, stepName: name }, () =>
      scope.engine.plugins.aroundStep(info, next),
    )
    output = encodeValue(value, `The output of step "${name}"`)
  } catch (error) {
    call.isOpen = false
    // An aborted body is expected to throw. That is not an error of the job.
    if (scope.interruption.reason() !== null) throw error
    return recordFailure(call, error)
  }
  call.isOpen = false
  return recordSuccess(call, output, index)
}

/** An interruption that comes with the answer to the start: the body never ran, so the start must not count as one. */
async function commitStart(call: StepCall<unknown>): Promise<void> {
  const { interruption } = call.scope
  await commit(call, 'started')
  if (interruption.reason() === null) return
  const { message, detail } = describeError(interruption.cause(), call.name)
  await commit(call, 'failed', { attempt: NO_ATTEMPT, error: message, errorDetail: detail })
  throw interruption.cause()
}

async function recordSuccess<T>(call: StepCall<T>, output: Json | null, index: number): Promise<T> {
  const { scope, name } = call
  // Listeners get a value of their own: what they do to it must not reach the job.
  const shown = isWatched(scope.engine, 'step:complete') ? decodeValue(output) : undefined
  const event: EventInput = { type: 'step:complete', ...ids(call), output: shown, duration: elapsed(call) }
  const { row, seq } = await commit(call, 'completed', { event, output, currentStepIndex: index + 1 })
  scope.recorded.set(name, row)
  scope.engine.events.emit(event, seq)
  return decodeValue(output) as T
}

async function recordFailure(call: StepCall<unknown>, error: unknown): Promise<never> {
  const { scope, name } = call
  const described = describeError(error, name)
  const event: EventInput = { type: 'step:fail', ...ids(call), error: described.message }
  const { row, seq } = await commit(call, 'failed', { event, error: described.message, errorDetail: described.detail })
  scope.recorded.delete(name)
  if (call.options.once === true) scope.failed.set(name, row)
  scope.failures.set(name, (scope.failures.get(name) ?? 0) + 1)
  scope.engine.events.emit(event, seq)
  throw remember(scope, name, error)
}

function remember(scope: StepScope, stepName: string, error: unknown): unknown {
  scope.stepOfError.set(error, stepName)
  return error
}

/** Of a failed row: its failure is no outcome that a later execution has to repeat. */
export const NO_ATTEMPT = 0

interface Result {
  readonly attempt?: number
  readonly event?: EventInput
  readonly output?: Json | null
  readonly error?: string
  readonly errorDetail?: StepRecord['errorDetail']
  readonly currentStepIndex?: number
}

/** Writes the call's row, or throws when the lease is lost: the execution is interrupted by then. */
async function commit(call: StepCall<unknown>, status: StepStatus, result: Result = {}) {
  const { scope, name, index } = call
  const row: RecordedStep = {
    id: call.rowId,
    status,
    attempt: result.attempt ?? scope.run.attempt,
    output: result.output ?? null,
    error: result.error ?? null,
    errorDetail: result.errorDetail ?? null,
    checkpoint: call.checkpoint,
  }
  const currentStepIndex = result.currentStepIndex ?? null
  if (currentStepIndex !== null) scope.completedSteps = Math.max(scope.completedSteps, currentStepIndex)
  const answer = await scope.writer.commitStep({
    write: { ...row, name, index, kind: 'run', durationMs: elapsed(call), due: null, waitName: null, child: null },
    currentStepIndex: currentStepIndex === null ? null : scope.completedSteps,
    event: result.event ?? null,
  })
  if (!answer.kept) throw scope.interruption.cause()
  return { row, seq: answer.eventSeq }
}

function toolsFor(call: StepCall<unknown>): StepTools {
  const { scope, name } = call
  return {
    signal: scope.interruption.signal,
    attempt: (scope.failures.get(name) ?? 0) + 1,
    checkpoint: decodeValue(call.checkpoint),
    idempotencyKey: `${scope.run.id}/${name}`,
    log: scope.logFor(name),
    progress: scope.progress,
    save: (checkpoint) => handled(save(call, checkpoint)),
  }
}

async function save(call: StepCall<unknown>, checkpoint: unknown): Promise<void> {
  const { scope, name } = call
  if (!call.isOpen) throw new InvalidOptionError(`save() of step "${name}" was called after its body had ended.`)
  call.checkpoint = encodeValue(checkpoint, `The checkpoint of step "${name}"`)
  const { row } = await commit(call, 'started')
  if (call.isOpen) scope.recorded.set(name, row)
}

function elapsed(call: StepCall<unknown>): number {
  return Math.max(0, Math.round(call.scope.engine.environment.clock.monotonic() - call.startedAt))
}

function ids({ scope, name, index }: StepCall<unknown>) {
  return { runId: scope.run.id, jobName: scope.run.jobName, stepName: name, stepIndex: index }
}
