import { type Clock, TimeoutError } from '../base'
import type { PlainAttempt } from '../job'
import type { ResolvedHandler, TaskContext } from './handler'

export interface PerformParams {
  readonly handler: ResolvedHandler
  readonly attempt: PlainAttempt
  readonly payload: unknown
  readonly clock: Clock
}

/** One attempt. It is over when the handler has settled or its time is up; one that goes on is not heard any more. */
export function perform({ handler, attempt, payload, clock }: PerformParams): unknown {
  const { taskType, timeoutMs } = handler
  if (timeoutMs === null) return handler.execute(payload, new AttemptContext(handler, attempt, null))
  const limit = limitTime({ timeoutMs, taskType, signal: attempt.signal, clock })
  const context = new AttemptContext(handler, attempt, limit.signal)
  // A handler that throws at once is one that rejects.
  const settled = (async () => void (await handler.execute(payload, context)))()
  return Promise.race([settled, limit.reached]).finally(limit.callOff)
}

/** Signal and log are made for who asks for them: most handlers do not. */
class AttemptContext implements TaskContext {
  readonly taskId: string
  readonly taskType: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly #attempt: PlainAttempt
  readonly #signal: AbortSignal | null

  constructor({ taskType, maxAttempts }: ResolvedHandler, attempt: PlainAttempt, signal: AbortSignal | null) {
    this.taskId = attempt.runId
    this.taskType = taskType
    this.attempt = attempt.tries
    this.maxAttempts = maxAttempts
    this.#attempt = attempt
    this.#signal = signal
  }

  get signal(): AbortSignal {
    return this.#signal ?? this.#attempt.signal
  }

  get log(): TaskContext['log'] {
    return this.#attempt.log
  }
}

interface LimitTimeParams {
  readonly timeoutMs: number
  readonly taskType: string
  /** Of the execution. */
  readonly signal: AbortSignal
  readonly clock: Clock
}

/** A signal that aborts with the execution's, or when the time is up. */
function limitTime({ timeoutMs, taskType, signal, clock }: LimitTimeParams) {
  const attempt = new AbortController()
  const interrupt = () => attempt.abort(signal.reason)
  let callOffTimer = () => {}
  const reached = new Promise<never>((_resolve, reject) => {
    callOffTimer = clock.schedule(timeoutMs, () => {
      const error = new TimeoutError(`The task "${taskType}" took longer than ${timeoutMs} ms.`)
      // First, or what the handler makes of the abort would be recorded instead.
      reject(error)
      attempt.abort(error)
    })
  })
  signal.addEventListener('abort', interrupt, { once: true })
  attempt.signal.addEventListener('abort', callOffTimer, { once: true })
  function callOff(): void {
    callOffTimer()
    signal.removeEventListener('abort', interrupt)
  }
  return { signal: attempt.signal, reached, callOff }
}
