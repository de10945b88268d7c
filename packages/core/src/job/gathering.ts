import { InvalidOptionError, requireDelay, refuseBadKey, refuseUnknownOptions, requireInteger } from '../base'

/** One run after the last of several messages that come soon after each other. */
export interface DebounceOptions {
  /** Milliseconds without another message. */
  readonly wait: number
  /** A place in the payload, such as `user.id`: messages with different values there have nothing to do with each other. */
  readonly key?: string | undefined
}

/** One run of several messages: its payload is the list of theirs. */
export interface BatchOptions {
  /** So many messages are enough. */
  readonly max: number
  /** Milliseconds after the first one, however few there are. */
  readonly within: number
  /** A place in the payload, such as `user.id`: each value there has batches of its own. */
  readonly key?: string | undefined
}

/** How several messages become one run of a job: the last of them, or all. */
export interface Gathering {
  readonly mode: 'last' | 'all'
  readonly waitMs: number
  readonly max: number
  readonly key: string | null
}

interface Given {
  readonly debounce?: number | DebounceOptions | undefined
  readonly batch?: BatchOptions | undefined
}

/** What one run takes of them. */
export const MOST_TOGETHER = 1000

/** Checked; `null` for a job with one run of each message. */
export function requireGathering({ debounce, batch }: Given, what: string): Gathering | null {
  if (debounce !== undefined && batch !== undefined) {
    throw new InvalidOptionError(`${what} has debounce and batch. It takes one of them.`)
  }
  if (debounce !== undefined) {
    const given = typeof debounce === 'number' ? { wait: debounce } : debounce
    refuseUnknownOptions(`debounce of ${what}`, given, { wait: true, key: true })
    requireDelay(`debounce of ${what}`, given.wait)
    return { mode: 'last', waitMs: given.wait, max: 0, key: keyIn(what, given.key) }
  }
  if (batch === undefined) return null
  refuseUnknownOptions(`batch of ${what}`, batch, { max: true, within: true, key: true })
  const { max, within, key } = batch
  requireInteger(`max of batch of ${what}`, max, { from: 1, to: MOST_TOGETHER })
  requireDelay(`within of batch of ${what}`, within)
  return { mode: 'all', waitMs: within, max, key: keyIn(what, key) }
}

function keyIn(what: string, key: string | undefined): string | null {
  refuseBadKey(`The key by which ${what} gathers messages`, key)
  return key ?? null
}
