import type { Clock } from './environment'

/** How long something may take, and what it fails with then. */
export interface TimeLimit {
  readonly clock: Clock
  readonly ms: number
  readonly error: () => Error
}

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.schedule(ms, resolve))
}

/** What `work` comes to, unless it takes too long: then it goes on, and nobody hears of it. */
export async function inTime<T>(limit: TimeLimit, work: Promise<T>): Promise<T> {
  const late = lateness(limit, () => {})
  try {
    return await Promise.race([work, late.reached])
  } finally {
    late.callOff()
  }
}

/** Until `work` is done, or so many milliseconds are over. */
export async function atMost(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  let callOff = () => {}
  const over = new Promise<void>((resolve) => {
    callOff = clock.schedule(ms, resolve)
  })
  try {
    await Promise.race([work, over])
  } finally {
    callOff()
  }
}

/** What `inTime` says, for a function that gets a signal, which aborts when its time is over, or when the signal around it does. */
export async function inTimeWithSignal<T>(
  limit: TimeLimit,
  around: AbortSignal,
  body: (limited: { readonly signal: AbortSignal }) => T | PromiseLike<T>,
): Promise<T> {
  const aborter = new AbortController()
  const late = lateness(limit, (error) => aborter.abort(error))
  const interrupt = () => {
    late.callOff()
    aborter.abort(around.reason)
  }
  around.addEventListener('abort', interrupt, { once: true })
  try {
    return await Promise.race([body(aborter), late.reached])
  } finally {
    late.callOff()
    around.removeEventListener('abort', interrupt)
  }
}

function lateness({ clock, ms, error }: TimeLimit, onLate: (error: Error) => void) {
  let callOff = () => {}
  const reached = new Promise<never>((_resolve, reject) => {
    callOff = clock.schedule(ms, () => {
      const cause = error()
      // First, or what the work makes of the abort would be taken for its end.
      reject(cause)
      onLate(cause)
    })
  })
  return { reached, callOff }
}
