import type { Clock } from './environment'
import { InterruptionError, type InterruptionReason } from './errors'
import { builtin } from './platform'

/** How long bodies may take to notice that their execution is over. */
export const GRACE_MS = 5000

/** The end of an execution that the job function did not choose. The first reason stays. */
export interface Interruption {
  readonly signal: AbortSignal
  reason(): InterruptionReason | null
  interrupt(reason: InterruptionReason, graceMs?: number): void
  /** The job function has returned: ctx does nothing any more. */
  end(): void
  /** Settles when interrupted and the grace is over. */
  readonly expired: Promise<void>
  /** The error that says why. */
  cause(): InterruptionError
  /** What a ctx call of an interrupted execution does: rejects, or never settles when nobody is left to care. */
  refuse(): Promise<never>
  /** Nothing is left to expire. */
  dispose(): void
}

interface NodeEvents {
  setMaxListeners(count: number, target: AbortSignal): void
}

export function createInterruption(clock: Clock, runId: string): Interruption {
  const controller = new AbortController()
  // All bodies of an execution share one signal, and Node takes eleven who listen for a leak.
  builtin<NodeEvents>('node:events')?.setMaxListeners(0, controller.signal)
  let reason: InterruptionReason | null = null
  let callOff: () => void = () => {}
  let expire: () => void = () => {}
  const expired = new Promise<void>((resolve) => {
    expire = resolve
  })
  return {
    signal: controller.signal,
    expired,
    reason: () => reason,
    interrupt(given, graceMs = GRACE_MS) {
      if (reason !== null) return
      reason = given
      callOff = clock.schedule(graceMs, expire)
      controller.abort(new InterruptionError(given, runId))
    },
    end() {
      reason ??= 'ended'
    },
    cause: () => (controller.signal.reason as InterruptionError | undefined) ?? new InterruptionError('ended', runId),
    refuse() {
      // Another process goes on where this one stops: the job must not take its own shutdown for an error.
      if (reason === 'shutdown' || reason === 'ended') return new Promise<never>(() => {})
      return Promise.reject(controller.signal.reason)
    },
    dispose: () => callOff(),
  }
}

/** Settles as `work` does, or rejects with the reason as soon as the signal aborts. */
export function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
