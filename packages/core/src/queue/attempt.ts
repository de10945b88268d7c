import { type Clock, inTimeWithSignal, TimeoutError } from '../base'
import type { PlainAttempt } from '../job'
import type { ResolvedHandler, TaskContext } from './handler'

export interface AttemptParams {
  readonly handler: ResolvedHandler
  readonly attempt: PlainAttempt
  readonly payload: unknown
  readonly clock: Clock
}

/** One attempt. It is over when the handler has settled or its time is up; one that goes on is not heard any more. */
export function runAttempt({ handler, attempt, payload, clock }: AttemptParams): unknown {
  const { taskType, timeoutMs } = handler
  if (timeoutMs === null) return handler.execute(payload, new AttemptContext(handler, attempt, null))
  const error = () => new TimeoutError(`The task "${taskType}" took longer than ${timeoutMs} ms.`)
  return inTimeWithSignal({ clock, ms: timeoutMs, error }, attempt.signal, ({ signal }) =>
    handler.execute(payload, new AttemptContext(handler, attempt, signal)),
  )
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
