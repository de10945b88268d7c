import { createUlids } from './ulid'

/** Time as the engine needs it: for timers, durations and timestamps shown to people, never to decide who owns a run. */
export interface Clock {
  /** Milliseconds since 1970, as the machine believes. */
  now(): number
  /** Milliseconds that only ever grow. */
  monotonic(): number
  /** Calls `fn` once after `ms`; returns how to call it off. */
  schedule(ms: number, fn: () => void): () => void
  /** Resolves when the event loop has turned. A clock that does not move by itself has none. */
  turn?(): Promise<void>
}

/** Everything that is not the same twice. Tests and simulations bring their own. */
export interface Environment {
  readonly clock: Clock
  /** A new ULID, greater than the one before. */
  createId(): string
  /** From 0 up to 1. */
  random(): number
}

/** A hundred years. Databases take what is much longer for something else, or not at all. */
export const LONGEST_DELAY_MS = 100 * 366 * 24 * 3600 * 1000

/** Browsers and Node fire timers that are longer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The clock of the platform. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(ms, fn) {
    if (ms <= LONGEST_TIMER_MS) {
      const timer = setTimeout(fn, Math.max(ms, 0))
      return () => clearTimeout(timer)
    }
    const dueAt = performance.now() + ms
    let timer: unknown
    const wait = (leftMs: number) => {
      timer = setTimeout(
        () => (leftMs > LONGEST_TIMER_MS ? wait(dueAt - performance.now()) : fn()),
        Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS),
      )
    }
    wait(ms)
    return () => clearTimeout(timer as number)
  },
  turn: () => new Promise(nextTurn),
}

/** What platforms have for it, in terms that the types of each of them agree with. */
interface Turns {
  readonly setImmediate?: (fn: () => void) => void
  readonly MessageChannel: new () => {
    readonly port1: { onmessage: (() => void) | null; close(): void }
    readonly port2: { postMessage(message: null): void }
  }
}

/** A timer of no length takes a millisecond or four; these take microseconds. */
function nextTurn(done: () => void): void {
  const { setImmediate, MessageChannel } = globalThis as unknown as Turns
  if (setImmediate !== undefined) {
    setImmediate(done)
    return
  }
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => {
    port1.close()
    done()
  }
  port2.postMessage(null)
}

export function createEnvironment(given: Partial<Environment> = {}): Environment {
  const clock = given.clock ?? systemClock
  return {
    clock,
    createId: given.createId ?? createUlids(() => clock.now(), chance()),
    random: given.random ?? Math.random,
  }
}

/** Resolves when timers had their turn. Where the clock stands still, it has to move for that. */
export function turnOf(clock: Clock): Promise<void> {
  return clock.turn?.() ?? new Promise((resolve) => clock.schedule(1, resolve))
}

export function toInstant(ms: number): string {
  return new Date(ms).toISOString()
}

const CHANCE_AT_ONCE = 256

/** Chance of the platform from 0 up to 1. Fetched one by one it costs more than a commit. */
function chance(): () => number {
  const { crypto } = globalThis as unknown as { readonly crypto: { getRandomValues(into: Uint32Array): unknown } }
  const pool = new Uint32Array(CHANCE_AT_ONCE)
  let used = pool.length
  return () => {
    if (used === pool.length) {
      crypto.getRandomValues(pool)
      used = 0
    }
    return (pool[used++] ?? 0) / 2 ** 32
  }
}
