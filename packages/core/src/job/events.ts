import { type Clock, Listeners, toInstant } from '../base'
import type { EventTemplate, Progress, WaitingFor } from '../port'

/** What every event of a run carries. */
export interface OfRun {
  readonly runId: string
  readonly jobName: string
}

/** What every event of a step carries. */
export interface OfStep extends OfRun {
  readonly stepName: string
  readonly stepIndex: number
}

/** What every event of a message carries. */
export interface OfMessage {
  readonly messageId: string
  readonly messageType: string
  readonly tenant: string
}

/** What every event of a schedule carries. */
export interface OfSchedule {
  readonly scheduleName: string
  readonly tenant: string
  readonly jobName: string
}

/** What the events carry, by their `type`. */
export interface EventFields {
  /** A run was stored. */
  'run:trigger': OfRun & { readonly payload: unknown }
  /** An idempotency key was used again; `payloadDiffers` says that it was for something else. */
  'run:deduplicated': OfRun & { readonly idempotencyKey: string; readonly payloadDiffers: boolean }
  /** A worker begins to execute it: at first, and after each wait, retry or crash. */
  'run:start': OfRun & { readonly payload: unknown }
  /**
   * Its function returned, and its output was stored. `duration`: milliseconds from the first start to the end, waits
   * and earlier executions included.
   */
  'run:complete': OfRun & { readonly output: unknown; readonly duration: number }
  /** It failed, and no policy tries it again; `failedStepName` is `null` when no step threw the error. */
  'run:fail': OfRun & { readonly error: string; readonly failedStepName: string | null }
  /** Its time (`timeout` of the job) was over. */
  'run:timeout': OfRun & { readonly error: string }
  /** `requested`: the run is still with its worker, which ends it. */
  'run:cancel': OfRun & { readonly requested: boolean }
  /** By hand, or by the retry policy after an error; `delayMs` until the next try is `null` by hand. */
  'run:retry': OfRun & { readonly byHand: boolean; readonly error: string | null; readonly delayMs: number | null }
  /** It was put away, because only waits are left. */
  'run:suspend': OfRun & { readonly waitingFor: WaitingFor }
  /** A signal came for it. */
  'run:signal': { readonly runId: string; readonly signalName: string }
  /** It waits for `unpark()` or `failParked()`: `reason` says why. */
  'run:park': OfRun & { readonly reason: string }
  /** It was parked, and goes on. */
  'run:unpark': OfRun
  /** Given back by a worker that stops: not a crash. */
  'run:release': OfRun
  /** Taken from a worker that is gone; pending again. `crashed` is false when it left on purpose, which counts nothing. */
  'run:recover': OfRun & { readonly crashed: boolean }
  /** The job told how far it is. */
  'run:progress': OfRun & { readonly progress: Progress }
  /** It was removed, with all that belongs to it, by `deleteRun()`. */
  'run:delete': OfRun
  /** The leader has found a worker for it. */
  'run:assign': OfRun & { readonly workerId: string }
  /** The worker that it was assigned to declined it, or did not start it in time: it waits to be assigned anew. */
  'run:orphan': OfRun & { readonly because: 'declined' | 'overdue' }
  /** A body is about to run, or a wait begins. */
  'step:start': OfStep
  /** Its result was stored. */
  'step:complete': OfStep & { readonly output: unknown; readonly duration: number }
  /** Its failure was stored; a policy may try it again. */
  'step:fail': OfStep & { readonly error: string }
  /** A stream told what it has so far. */
  'step:chunk': OfStep & { readonly chunk: unknown }
  /** A stream starts again: only chunks after this one count. */
  'step:restart': OfStep
  /** The job returned while this step was still running; the run waits for it. */
  'step:unawaited': OfStep
  /** A job logged a line, in a step or between steps (`stepName` is `null`). */
  'log:write': {
    readonly runId: string
    readonly stepName: string | null
    readonly level: 'info' | 'warn' | 'error'
    readonly message: string
    readonly data: unknown
  }
  /** Due runs of a job that this worker does not know. They stay pending for a worker that does. */
  'job:unknown': { readonly jobName: string }
  /** A message was kept. */
  'inbox:published': OfMessage
  /** Jobs wanted a message: so many runs of it were created. */
  'inbox:delivered': OfMessage & { readonly runs: number }
  /** No job wanted a message. It is kept, and may be sent out anew. */
  'inbox:unwanted': OfMessage
  /** A job wanted a message, or several together, and its schema refused the payload: it got no run. */
  'inbox:refused': {
    readonly messageIds: readonly string[]
    readonly tenant: string
    readonly jobName: string
    readonly error: string
  }
  /** An instant of a schedule has come: this is its run. */
  'schedule:fired': OfSchedule & { readonly runId: string; readonly scheduledFor: string }
  /** Instants of a schedule that have no run, from the first to the last: they came too late, or over a run that goes on. */
  'schedule:missed': OfSchedule & {
    readonly from: string
    readonly to: string
    /** At least so many: of a thousand and more they are not counted. */
    readonly count: number
    readonly because: 'late' | 'overlap'
  }
  /** The worker met trouble with its storage and goes on. */
  'worker:error': { readonly workerId: string; readonly during: string; readonly error: string; readonly code: string }
  /** Another worker has the run; what this one does for it is not stored any more. */
  'worker:lease-lost': OfRun & { readonly workerId: string }
}

/** The `type` of an event. */
export type EventType = keyof EventFields

/** Each of them, to refuse a name that will never be heard of. */
const EVERY_TYPE: Readonly<Record<EventType, true>> = {
  'run:trigger': true,
  'run:deduplicated': true,
  'run:start': true,
  'run:complete': true,
  'run:fail': true,
  'run:timeout': true,
  'run:cancel': true,
  'run:retry': true,
  'run:suspend': true,
  'run:signal': true,
  'run:park': true,
  'run:unpark': true,
  'run:release': true,
  'run:recover': true,
  'run:progress': true,
  'run:delete': true,
  'run:assign': true,
  'run:orphan': true,
  'step:start': true,
  'step:complete': true,
  'step:fail': true,
  'step:chunk': true,
  'step:restart': true,
  'step:unawaited': true,
  'log:write': true,
  'job:unknown': true,
  'inbox:published': true,
  'inbox:delivered': true,
  'inbox:unwanted': true,
  'inbox:refused': true,
  'schedule:fired': true,
  'schedule:missed': true,
  'worker:error': true,
  'worker:lease-lost': true,
}

/** Every event there is. */
export const EVENT_TYPES = Object.keys(EVERY_TYPE) as readonly EventType[]

/** An event before it is numbered. */
export type EventInput<T extends EventType = EventType> = {
  [Type in T]: { readonly type: Type } & EventFields[Type]
}[T]

/** What every event carries when it is told. */
export interface Numbered {
  readonly timestamp: string
  /** Firing order in this process, from 1. */
  readonly sequence: number
  /** The event's number in the run's stored history; absent when it is not stored. */
  readonly seq?: number
}

/** Every event, discriminated by `type`. */
export type DurablyEvent<T extends EventType = EventType> = { [Type in T]: EventInput<Type> & Numbered }[T]

/** A worker began to execute a run. */
export type RunStartEvent = DurablyEvent<'run:start'>
/** A run completed. */
export type RunCompleteEvent = DurablyEvent<'run:complete'>
/** A run failed. */
export type RunFailEvent = DurablyEvent<'run:fail'>
/** A body is about to run. */
export type StepStartEvent = DurablyEvent<'step:start'>
/** The result of a step was stored. */
export type StepCompleteEvent = DurablyEvent<'step:complete'>
/** The failure of a step was stored. */
export type StepFailEvent = DurablyEvent<'step:fail'>
/** A job logged a line. */
export type LogWriteEvent = DurablyEvent<'log:write'>

export interface Emitter {
  on<T extends EventType>(type: T, listener: (event: DurablyEvent<T>) => void): () => void
  hears(type: EventType): boolean
  /** For parts of the engine, which want to know of whom it is and nothing else: they are no listeners. */
  watch(type: EventType, watcher: (runId: string) => void): void
  /** As `emit`, of an event that nobody hears: it need not be put together. */
  pass(type: EventType, runId: string): void
  /** Delivers at once. A listener that throws or rejects disturbs nobody: its error goes to `onListenerError`. */
  emit(event: EventInput, seq?: number): void
}

export interface EmitterParams {
  readonly clock: Clock
  /** Listeners are no part of the job that caused the event. */
  readonly outside: (fn: () => void) => void
  readonly onListenerError: (error: unknown, type: EventType) => void
}

export function createEmitter({ clock, outside, onListenerError }: EmitterParams): Emitter {
  const listeners = new Listeners({ types: EVENT_TYPES, onError: onListenerError })
  const watchers = new Map<EventType, ((runId: string) => void)[]>()
  let sequence = 0
  function pass(type: EventType, runId: string): void {
    sequence += 1
    const watching = watchers.get(type)
    if (watching !== undefined) for (const watcher of watching) watcher(runId)
  }
  return {
    on: (type, listener) => listeners.add(type, listener),
    hears: (type) => listeners.hears(type),
    watch: (type, watcher) => void watchers.set(type, [...(watchers.get(type) ?? []), watcher]),
    pass,
    emit(input, seq) {
      if ('runId' in input) pass(input.type, input.runId)
      else sequence += 1
      if (!listeners.hears(input.type)) return
      const event = Object.assign({}, input, { timestamp: toInstant(clock.now()), sequence })
      if (seq !== undefined) Object.assign(event, { seq })
      outside(() => listeners.tell(input.type, event))
    },
  }
}

/** What is stored of an event: run and job are the row's own, and so is the payload of the run. */
export function toTemplate(event: EventInput): EventTemplate {
  const { type, ...fields } = event
  const { runId: _runId, jobName: _jobName, payload: _payload, ...own } = fields as Record<string, unknown>
  return { type, payload: JSON.stringify(own) }
}
