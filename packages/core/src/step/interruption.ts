import { builtin, type Clock, ExecutionAbortedError, type InterruptionReason } from '../base'
import { hushInterruptions } from './unheard'

/** How long bodies may take to notice that their execution is over. */
export const GRACE_MS = 5000

/** The end of an execution that the job function did not choose. The first reason stays. */
export interface Interruption {
  readonly signal: AbortSignal
  /** Calls `fn` when interrupted, before the signal aborts. */
  onInterrupt(fn: () => void): void
  reason(): InterruptionReason | null
  interrupt(reason: InterruptionReason, graceMs?: number): void
  /** The job function has returned: ctx does nothing any more. */
  end(): void
  /** Settles when interrupted and the grace is over. */
  readonly expired: Promise<void>
  /** The error that says why. */
  cause(): ExecutionAbortedError
  /** Whether somebody just threw that error on. */
  isCause(error: unknown): boolean
  /** Nothing is left to expire. */
  dispose(): void
}

interface NodeEvents {
  setMaxListeners(count: number, target: AbortSignal): void
}

export function createInterruption(clock: Clock, runId: string): Interruption {
  // Made for who asks for the signal: most jobs do not, and it costs more than all the rest of an interruption.
  let controller: AbortController | null = null
  let reason: InterruptionReason | null = null
  let cause: ExecutionAbortedError | null = null
  const listeners: (() => void)[] = []
  let callOff: () => void = () => {}
  let expire: () => void = () => {}
  const expired = new Promise<void>((resolve) => {
    expire = resolve
  })
  return {
    get signal() {
      controller ??= createController(cause)
      return controller.signal
    },
    onInterrupt: (fn) => void listeners.push(fn),
    expired,
    reason: () => reason,
    interrupt(given, graceMs = GRACE_MS) {
      if (reason !== null) return
      reason = given
      cause = new ExecutionAbortedError(given, runId)
      hushInterruptions()
      callOff = clock.schedule(graceMs, expire)
      for (const listener of listeners) listener()
      controller?.abort(cause)
    },
    end() {
      reason ??= 'ended'
    },
    cause: () => cause ?? new ExecutionAbortedError('ended', runId),
    isCause: (error) => cause !== null && error === cause,
    dispose: () => callOff(),
  }
}

function createController(cause: ExecutionAbortedError | null): AbortController {
  const controller = new AbortController()
  // All bodies of an execution share one signal, and Node takes eleven who listen for a leak.
  builtin<NodeEvents>('node:events')?.setMaxListeners(0, controller.signal)
  if (cause !== null) controller.abort(cause)
  return controller
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
