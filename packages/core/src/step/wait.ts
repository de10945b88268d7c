import { type CtxCall, openCall } from './call'
import {
  CancelledError,
  decodeValue,
  encodeValue,
  InvalidOptionError,
  isEnded,
  isStorableDelay,
  isStorableInstant,
  type Json,
  NotFoundError,
  type OptionNames,
  parseWith,
  refuseUnknownOptions,
  RunFailedError,
  type StandardSchema,
  TimeoutError,
} from '../base'
import { type EventInput, toRun, type WaitForOptions } from '../job'
import { capability, type RunRecord, type SignalRecord, type StepKind, type StepWrite } from '../port'
import { commitOrFail, recordFailure, replayFailure } from './failure'
import { elapsedMs, idsOf, leftMs, newRow, type RowResult, type CallRow } from './row'
import type { RecordedStep, StepScope } from './scope'
import type { Awaited } from './suspension'

/** What a wait came to: the text of its value, or the error that the job gets. */
export type Found = { readonly output: Json | null } | { readonly error: unknown }

export interface WaitKind {
  readonly kind: StepKind
  readonly waitName?: string
  /** When the wait ends by itself, counted from its first call. */
  readonly due: StepWrite['due']
  /** What ends it, looked for in the storage; `null` when it has not come. */
  look(): Promise<(Found & Pick<RowResult, 'consumedSignals'>) | null>
  /** What the wait comes to when its time is over. */
  whenDue(): Found
  /** The children it waits for, once it has looked. */
  awaited?(): Awaited
}

/** The wait is recorded once, so that its end is not computed again by a later execution. */
export function wait<T>(call: CtxCall, wanted: WaitKind): Promise<T> {
  return openCall(call, wanted.kind, async (index) => {
    const { scope, name } = call
    const before = scope.recorded.get(name)
    if (before?.status === 'completed') return decodeValue(before.output) as T
    replayFailure(scope, name, false)
    const row = newRow({ scope, name, index, before, ...wanted })
    const found = await untilFound(row, wanted, before)
    scope.suspension.found(name)
    return (await recordFound(row, found)) as T
  })
}

async function untilFound(row: CallRow, wanted: WaitKind, before: RecordedStep | undefined): Promise<Found> {
  const { scope, name } = row
  const { clock } = scope.engine.environment
  let dueAt = before === undefined ? null : endOf(scope, before)
  let isRecorded = before !== undefined
  for (;;) {
    // Before the look, so that what comes after it is not missed.
    const wakesSeen = scope.suspension.wakes
    const begunAt = clock.monotonic()
    const found = await wanted.look()
    const lookMs = clock.monotonic() - begunAt
    if (found !== null) return found
    if (scope.interruption.reason() !== null) throw scope.interruption.cause()
    if (before?.isDue === true || (dueAt !== null && dueAt <= clock.monotonic())) return wanted.whenDue()
    if (!isRecorded) {
      await recordWaiting(row, wanted.due)
      isRecorded = true
      dueAt = firstEnd(scope, wanted.due)
    }
    await scope.suspension.wait({
      name,
      dueInMs: dueAt === null ? null : dueAt - clock.monotonic(),
      wakesSeen,
      lookMs,
      awaited: wanted.awaited?.(),
    })
    if (scope.interruption.reason() !== null) throw scope.interruption.cause()
  }
}

async function recordWaiting(row: CallRow, due: StepWrite['due']): Promise<void> {
  const { scope, name } = row
  const start: EventInput = { type: 'step:start', ...idsOf(row) }
  scope.writer.ride(start)
  const { row: recorded } = await commitOrFail(row, 'waiting', { due })
  scope.recorded.set(name, recorded)
  scope.engine.events.emit(start)
}

async function recordFound(row: CallRow, found: Found & Pick<RowResult, 'consumedSignals'>): Promise<unknown> {
  const { scope, name } = row
  const { consumedSignals = [] } = found
  if ('error' in found) return recordFailure(row, { error: found.error, isFinal: false, consumedSignals })
  const { output } = found
  const event: EventInput = {
    type: 'step:complete',
    ...idsOf(row),
    output: decodeValue(output),
    duration: elapsedMs(row),
  }
  const { row: recorded, seq } = await commitOrFail(row, 'completed', { output, event, consumedSignals })
  scope.recorded.set(name, recorded)
  scope.engine.events.emit(event, seq)
  return decodeValue(output)
}

/** By the worker's own clock, from what the storage's said at the claim. */
function endOf(scope: StepScope, { dueAt }: RecordedStep): number | null {
  return dueAt === null ? null : scope.engine.environment.clock.monotonic() + leftMs(scope, dueAt)
}

function firstEnd(scope: StepScope, due: StepWrite['due']): number | null {
  if (due === null) return null
  return scope.engine.environment.clock.monotonic() + ('inMs' in due ? due.inMs : leftMs(scope, due.at))
}

/** `ctx.sleep` */
export function sleepStep(call: CtxCall, until: number | Date): Promise<void> {
  const nothing: Found = { output: null }
  return wait(call, {
    kind: 'sleep',
    due: toDue(`ctx.sleep("${call.name}")`, until),
    look: async () => null,
    whenDue: () => nothing,
  })
}

function toDue(what: string, until: number | Date): NonNullable<StepWrite['due']> {
  if (isStorableDelay(until)) return { inMs: Math.ceil(until) }
  if (until instanceof Date && isStorableInstant(until)) return { at: until.toISOString() }
  throw new InvalidOptionError(
    `${what} needs milliseconds from 0 up to 100 years, or a Date of the years 1 to 9999, not ${String(until)}.`,
  )
}

const WAIT_FOR_OPTIONS: OptionNames<WaitForOptions> = { schema: true, timeout: true, signal: true }

/** `ctx.waitFor` */
export function waitForStep<T>(call: CtxCall, options: WaitForOptions<T>): Promise<T> {
  const { scope, name } = call
  refuseUnknownOptions(`ctx.waitFor("${name}")`, options, WAIT_FOR_OPTIONS)
  const { schema, timeout, signal: waitName = name } = options
  const signals = capability(scope.engine.storage, 'signals', `ctx.waitFor("${name}")`)
  return wait(call, {
    kind: 'signal',
    waitName,
    due: timeout === undefined ? null : toDue(`The timeout of ctx.waitFor("${name}")`, timeout),
    async look() {
      const signal = await scope.looks.takeSignal(signals, waitName)
      return signal === null ? null : { ...(await accept(signal, schema)), consumedSignals: [signal.position] }
    },
    whenDue: () => ({ error: new TimeoutError(`No signal "${waitName}" came within ${timeout} ms.`) }),
  })
}

async function accept({ name, payload }: SignalRecord, schema: StandardSchema | undefined): Promise<Found> {
  if (schema === undefined) return { output: payload }
  const what = `The payload of signal "${name}"`
  try {
    const { value } = await parseWith(schema, decodeValue(payload), what)
    return { output: encodeValue(value, what) }
  } catch (error) {
    return { error }
  }
}

/** `ctx.wait` */
export function waitForChild<T>(call: CtxCall, child: { readonly id: string }): Promise<T> {
  const { scope, name } = call
  const what = `ctx.wait("${name}")`
  if (typeof child?.id !== 'string') throw new InvalidOptionError(`${what} needs what ctx.trigger returned.`)
  const waiter = { runId: scope.run.id, what, madeBy: 'ctx.trigger()' }
  return wait(call, {
    kind: 'child',
    waitName: child.id,
    due: null,
    async look() {
      const run = await scope.looks.child(child.id)
      return run === null ? { error: NotFoundError.run(child.id) } : foundOf(run, waiter)
    },
    whenDue: () => ({ output: null }),
    awaited: () => ({ ids: [child.id], open: 1, isOwn: false }),
  })
}

/** Who waits for children, as its errors say it. */
export interface Waiter {
  readonly runId: string
  readonly what: string
  readonly madeBy: string
}

/** What a child came to; `null` while it has not ended. */
export function foundOf(run: RunRecord, { runId, what, madeBy }: Waiter): Found | null {
  if (isEnded(run.status)) {
    const ended = toRun(run)
    if (ended.status === 'completed') return { output: run.output }
    if (ended.status === 'failed' || ended.status === 'timed_out') return { error: new RunFailedError(ended) }
    return { error: new CancelledError(run.id) }
  }
  if (run.id === runId) {
    const reason = `${runId} is this very run, whose idempotencyKey the child was given. Give each run a key of its own.`
    return { error: new InvalidOptionError(`${what} would wait for ever: ${reason}`) }
  }
  if (run.parentRunId === runId || run.alsoAwaitedBy.includes(runId)) return null
  // Nobody would wake the run that waits.
  return {
    error: new InvalidOptionError(
      `${what} waits for runs that this run created by ${madeBy}; ${run.id} is not one of them.`,
    ),
  }
}
