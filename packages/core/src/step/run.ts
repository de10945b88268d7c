import { type CtxCall, follow, openCallThen, Recorded } from './call'
import {
  decodeValue,
  describeError,
  describeFailure,
  encodeValue,
  InterruptedError,
  inTimeWithSignal,
  InvalidOptionError,
  isRejection,
  type Json,
  type OptionNames,
  refuseUnknownOptions,
  requireDuration,
  TimeoutError,
} from '../base'
import { isWatched } from '../engine'
import { type EventInput, requireRetryPolicy, retryDelayMs, type RunStepOptions, type StepTools } from '../job'
import type { Settle } from './open-calls'
import type { StepKind } from '../port'
import { countFailure, recordFailure, replayFailure } from './failure'
import {
  checkpointOf,
  commitRow,
  elapsedMs,
  idsOf,
  leftMs,
  newRow,
  NO_ATTEMPT,
  rowOf,
  sendRow,
  toStepCommit,
} from './row'
import type { RecordedStep } from './scope'
import { type OpenStep, toolsFor } from './tools'

/** A step with a body: what `ctx.run` and its kin share. */
export interface StepCall extends OpenStep {
  readonly options: RunStepOptions
  /** One try. */
  readonly body: (call: StepCall, tools: StepTools) => unknown
  /** Of a try that stores its result by itself: what it stored, once it is over. */
  stored: Promise<StoredResult | null> | null
}

/** A row that was kept, and what is told of it. */
export interface StoredResult {
  readonly row: RecordedStep
  /** `null`: nobody would see it. */
  readonly event: EventInput | null
  readonly seq: number | undefined
}

export interface RunStepParams extends CtxCall {
  readonly kind: StepKind
  readonly options: RunStepOptions
  readonly body: StepCall['body']
}

/** The recorded value, or the body's once it is recorded. Between a body and its commit there is no promise but the body's. */
export function runStep<T>(params: RunStepParams): Promise<T> {
  requireStepOptions(params.name, params.options)
  const before = params.scope.recorded.get(params.name)
  return openCallThen<unknown>(params, params.kind, (index) => {
    if (before?.status === 'completed') return new Recorded(decodeValue(before.output))
    return (settle) => {
      try {
        begin(params, index, settle)
      } catch (error) {
        settle.fail(error)
      }
    }
  }) as Promise<T>
}

function begin(params: RunStepParams, index: number, settle: Settle): void {
  const { scope, name, options } = params
  const before = scope.recorded.get(name)
  const isOnce = options.once === true
  replayFailure(scope, name, isOnce)
  const call = newCall(params, index, before)
  const isLost = isOnce && before?.status === 'started'
  if (isLost) follow(recordFailure(call, { error: new InterruptedError(name), isFinal: true }), settle)
  // A try that waits for its time was recorded with the one that failed before it.
  else if (before?.status === 'waiting' && !before.isDue) runLater(call, leftMs(scope, before.dueAt), settle)
  else runBody(call, settle)
}

function newCall(params: RunStepParams, index: number, before: RecordedStep | undefined): StepCall {
  const { scope, name, kind, options, body } = params
  const row = newRow({ scope, name, index, kind, before })
  return {
    scope,
    name,
    index,
    kind,
    waitName: row.waitName,
    rowId: row.rowId,
    checkpoint: row.checkpoint ?? checkpointOf(scope.failed.get(name), kind),
    startedAt: row.startedAt,
    options,
    body,
    isOpen: true,
    stored: null,
  }
}

function runLater(call: StepCall, dueInMs: number, settle: Settle): void {
  follow(
    untilDue(call, dueInMs).then(() => runBodyAfter({ ...call, startedAt: now(call) })),
    settle,
  )
}

function runBodyAfter(call: StepCall): Promise<unknown> {
  return new Promise((succeed, fail) => runBody(call, { succeed, fail }))
}

function now({ scope }: StepCall): number {
  return scope.engine.environment.clock.monotonic()
}

/** Time alone ends this wait. */
async function untilDue({ scope, name }: StepCall, dueInMs: number): Promise<void> {
  await scope.suspension.wait({ name, dueInMs, wakesSeen: Number.POSITIVE_INFINITY })
  if (scope.interruption.reason() !== null) throw scope.interruption.cause()
}

function runBody(call: StepCall, settle: Settle): void {
  const { engine, writer } = call.scope
  const isTold = isWatched(engine, 'step:start')
  const start: EventInput | null = isTold ? { type: 'step:start', ...idsOf(call) } : null
  if (start !== null) writer.ride(start)
  if (call.options.once === true) {
    follow(
      commitStart(call).then(() => {
        if (start !== null) engine.events.emit(start)
        return new Promise((succeed, fail) => callBody(call, { succeed, fail }))
      }),
      settle,
    )
    return
  }
  if (start !== null) engine.events.emit(start)
  callBody(call, settle)
}

function callBody(call: StepCall, settle: Settle): void {
  const { scope, name } = call
  let ended: Ended | Promise<unknown>
  try {
    const value = scope.engine.bodyScope.run({ scope, stepName: name }, () => aroundBody(call))
    // What is like a promise may throw when it is asked.
    ended = isThenable(value) ? Promise.resolve(value) : { value }
  } catch (error) {
    ended = { error }
  }
  if (ended instanceof Promise) {
    ended.then(
      (value) => bodyEnded(call, { value }, settle),
      (error: unknown) => bodyEnded(call, { error }, settle),
    )
  } else bodyEnded(call, ended, settle)
}

/** With the plugins around it, which are few: what they need is made for them alone. */
function aroundBody(call: StepCall): unknown {
  const { scope } = call
  const next = () => {
    // A plugin may have taken its time.
    if (scope.interruption.reason() !== null) throw scope.interruption.cause()
    return withinTimeout(call)
  }
  if (!scope.engine.plugins.wrapsSteps()) return next()
  const info = { ...idsOf(call), signal: scope.interruption.signal }
  return scope.engine.plugins.aroundStep(info, async () => next())
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return false
  return typeof (value as Partial<Promise<unknown>>).then === 'function'
}

type Ended = { readonly value: unknown } | { readonly error: unknown }

function bodyEnded(call: StepCall, ended: Ended, settle: Settle): void {
  call.isOpen = false
  // What was stored together with other things stays, whatever a plugin made of it.
  if (call.stored === null) keepResult(call, ended, settle)
  else
    follow(
      call.stored.then((stored) => {
        if (stored !== null) return announceSuccess(call, stored)
        return new Promise((succeed, fail) => keepResult(call, ended, { succeed, fail }))
      }),
      settle,
    )
}

function keepResult(call: StepCall, ended: Ended, settle: Settle): void {
  const encoded = 'error' in ended ? ended : encodeOutput(call, ended.value)
  if (!('error' in encoded)) recordSuccess(call, encoded.output, settle)
  // An aborted body is expected to throw. That is not an error of the job.
  else if (call.scope.interruption.reason() !== null) settle.fail(encoded.error)
  else follow(failOrTryAgain(call, encoded.error), settle)
}

function encodeOutput({ name }: StepCall, value: unknown) {
  try {
    return { output: encodeValue(value, `The output of step "${name}"`) }
  } catch (error) {
    return { error }
  }
}

/** An interruption that comes with the answer to the start: the body never ran, so the start must not count as one. */
async function commitStart(call: StepCall): Promise<void> {
  const { interruption } = call.scope
  await commitRow(call, 'started')
  if (interruption.reason() === null) return
  const { message, detail } = describeError(interruption.cause(), call.name)
  await commitRow(call, 'failed', { attempt: NO_ATTEMPT, error: message, errorDetail: detail })
  throw interruption.cause()
}

function recordSuccess(call: StepCall, output: Json | null, settle: Settle): void {
  const event = completion(call, output)
  sendRow(call, toStepCommit(call, 'completed', { event, output }), {
    answer: ({ row, seq }) => settle.succeed(announceSuccess(call, { row, event, seq })),
    fail: (error) => (isRejection(error) ? follow(failOrTryAgain(call, error), settle) : settle.fail(error)),
  })
}

/** Listeners get a value of their own: what they do to it must not reach the job. */
export function completion(call: StepCall, output: Json | null): EventInput | null {
  if (!isWatched(call.scope.engine, 'step:complete')) return null
  return { type: 'step:complete', ...idsOf(call), output: decodeValue(output), duration: elapsedMs(call) }
}

function announceSuccess({ scope, name }: StepCall, { row, event, seq }: StoredResult): unknown {
  scope.recorded.set(name, row)
  if (event !== null) scope.engine.events.emit(event, seq)
  return decodeValue(row.output)
}

/** The body's own try, with a signal of its own when it has a limit. */
function withinTimeout(call: StepCall): unknown {
  const { interruption } = call.scope
  return call.options.timeout === undefined ? call.body(call, toolsFor(call, interruption)) : withinLimit(call)
}

function withinLimit(call: StepCall): Promise<unknown> {
  const { scope, name, options } = call
  const ms = options.timeout ?? 0
  const error = () => new TimeoutError(`Step "${name}" took longer than ${ms} ms.`)
  const limit = { clock: scope.engine.environment.clock, ms, error }
  return inTimeWithSignal(limit, scope.interruption.signal, (limited) => call.body(call, toolsFor(call, limited)))
}

async function failOrTryAgain(call: StepCall, error: unknown): Promise<unknown> {
  const { scope, name, options } = call
  const attempt = (scope.failuresOfAttempt.get(name) ?? 0) + 1
  const { random } = scope.engine.environment
  let delayMs: number | null
  try {
    delayMs = retryDelayMs({ policy: options.retry ?? null, attempt, error, random })
  } catch (thrown) {
    return recordFailure(call, { error: thrown, isFinal: false })
  }
  if (delayMs === null) return recordFailure(call, { error, isFinal: options.once === true })
  const next = await recordFailureAndWait(call, error, delayMs)
  await untilDue(next, delayMs)
  return runBodyAfter({ ...next, startedAt: now(next) })
}

/** The try that failed, and in the same write the one that waits. */
async function recordFailureAndWait(call: StepCall, error: unknown, delayMs: number): Promise<StepCall> {
  const { scope, name } = call
  const { message, detail } = describeFailure(error, name)
  const event: EventInput = { type: 'step:fail', ...idsOf(call), error: message }
  const next = { ...call, rowId: scope.engine.environment.createId(), isOpen: true, stored: null }
  const waiting = rowOf(next, 'waiting', { error: message, errorDetail: detail })
  const { seq } = await commitRow(call, 'failed', {
    event,
    error: message,
    errorDetail: detail,
    next: { row: waiting, delayMs },
  })
  scope.recorded.set(name, waiting)
  countFailure(scope, name)
  scope.engine.events.emit(event, seq)
  return next
}

const STEP_OPTIONS: OptionNames<RunStepOptions> = { once: true, retry: true, timeout: true }

function requireStepOptions(name: string, options: RunStepOptions): void {
  const step = `Step "${name}"`
  refuseUnknownOptions(step, options, STEP_OPTIONS)
  const { once, retry, timeout } = options
  if (retry !== undefined) requireRetryPolicy(retry, step)
  if (retry?.countCrashes === true) {
    throw new InvalidOptionError(`${step}: retry.countCrashes is for jobs; what a lost worker was at is not recorded.`)
  }
  if (retry !== undefined && once === true) {
    throw new InvalidOptionError(`${step} runs at most once, so it cannot be tried again: give once or retry.`)
  }
  if (timeout !== undefined) requireDuration(`The timeout of step "${name}"`, timeout)
}
