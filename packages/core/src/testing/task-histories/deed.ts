import type { TaskContext } from '../../queue/index'
import type { Clock } from '../../base'
import type { Random } from '../simulation/random'
import { type Failure, toThrown } from './task-kinds'

/** What a handler does in one attempt. */
export interface Deed {
  /** How long it takes; `null` for ever. */
  readonly ms: number | null
  readonly failure: Failure | null
  /** Whether it gives up when its signal says so. */
  readonly listens: boolean
}

/** How a handler came to its end. */
export type Settled = { readonly failure: Failure | null; readonly at: number } | { readonly gaveUp: true }

const FAILURES = { error: 10, text: 2, permanent: 1, hopeless: 1, retryAfter: 2 } as const

/** In calm times no handler goes on for ever. */
export function makeDeed(random: Random, isCalm: boolean): Deed {
  const isEndless = !isCalm && random.chance(0.08)
  return {
    ms: isEndless ? null : random.chance(0.4) ? 0 : random.between(1, random.pick([100, 1500, 6000])),
    failure: random.chance(isCalm ? 0.3 : 0.55) ? makeFailure(random) : null,
    listens: random.chance(0.4),
  }
}

function makeFailure(random: Random): Failure {
  const kind = random.weighted(FAILURES)
  const message = `${kind} ${random.int(1000)}`
  return kind === 'retryAfter' ? { kind, message, afterMs: random.between(0, 5000) } : { kind, message }
}

export interface DoParams {
  readonly deed: Deed
  readonly clock: Clock
  readonly signal: TaskContext['signal']
  readonly onSettled: (settled: Settled) => void
}

/** The body of a handler. What takes no time is returned or thrown at once. */
export function perform({ deed, clock, signal, onSettled }: DoParams): unknown {
  const { ms, failure, listens } = deed
  const settle = () => {
    onSettled({ failure, at: clock.monotonic() })
    if (failure !== null) throw toThrown(failure)
  }
  if (ms === 0) {
    settle()
    return undefined
  }
  return new Promise<void>((resolve, reject) => {
    if (listens) {
      const giveUp = () => {
        onSettled({ gaveUp: true })
        reject(signal.reason)
      }
      signal.addEventListener('abort', giveUp, { once: true })
    }
    if (ms === null) return
    clock.schedule(ms, () => {
      try {
        resolve(settle())
      } catch (error) {
        reject(error)
      }
    })
  })
}
