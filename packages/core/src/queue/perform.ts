import { TimeoutError, type Clock, type JobContext } from '../index'
import type { ResolvedHandler, TaskContext } from './handler'

export interface PerformParams {
  readonly handler: ResolvedHandler
  readonly ctx: JobContext
  readonly payload: unknown
  readonly clock: Clock
}

/** One attempt. It is over when the handler has settled or its time is up; one that goes on is not heard any more. */
export async function perform({ handler, ctx, payload, clock }: PerformParams): Promise<void> {
  const { taskType, maxAttempts, timeoutMs } = handler
  const about = { taskId: ctx.runId, taskType, attempt: ctx.tries, maxAttempts, log: ctx.log }
  if (timeoutMs === null) {
    const taskContext: TaskContext = {
      ...about,
      get signal() {
        return ctx.signal
      },
    }
    await handler.execute(payload, taskContext)
    return
  }
  const limit = limitTime({ timeoutMs, taskType, signal: ctx.signal, clock })
  // A handler that throws at once is one that rejects.
  const settled = (async () => void (await handler.execute(payload, { ...about, signal: limit.signal })))()
  try {
    await Promise.race([settled, limit.reached])
  } finally {
    limit.callOff()
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
