import { TimeoutError, type Clock, type JobContext } from '../index'
import type { ResolvedHandler } from './handler'

export interface PerformParams {
  readonly handler: ResolvedHandler
  readonly ctx: JobContext
  readonly payload: unknown
  readonly clock: Clock
}

/** One attempt. It is over when the handler has settled or its time is up; one that goes on is not heard any more. */
export async function perform({ handler, ctx, payload, clock }: PerformParams): Promise<void> {
  const { taskType, maxAttempts } = handler
  const attempt = new AbortController()
  const interrupt = () => attempt.abort(ctx.signal.reason)
  ctx.signal.addEventListener('abort', interrupt, { once: true })
  const time = limitTime(handler, attempt, clock)
  const { signal } = attempt
  signal.addEventListener('abort', time.callOff, { once: true })
  const taskContext = { taskId: ctx.runId, taskType, attempt: ctx.tries, maxAttempts, signal, log: ctx.log }
  // A handler that throws at once is one that rejects.
  const settled = (async () => void (await handler.execute(payload, taskContext)))()
  try {
    await Promise.race([settled, time.isUp])
  } finally {
    time.callOff()
    ctx.signal.removeEventListener('abort', interrupt)
  }
}

function limitTime({ timeoutMs, taskType }: ResolvedHandler, attempt: AbortController, clock: Clock) {
  let callOff = () => {}
  const isUp = new Promise<never>((_resolve, reject) => {
    if (timeoutMs === null) return
    callOff = clock.schedule(timeoutMs, () => {
      const error = new TimeoutError(`The task "${taskType}" took longer than ${timeoutMs} ms.`)
      // First, or what the handler makes of the abort would be recorded instead.
      reject(error)
      attempt.abort(error)
    })
  })
  return { isUp, callOff: () => callOff() }
}
