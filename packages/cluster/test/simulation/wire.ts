import { StorageError } from '@coji/durably-core'
import type { MemoryStorage } from '@coji/durably-core/memory'
import type { FakeClock } from '@coji/durably-core/testing'
import type { Random } from './random'

/**
 * Between a process and the storage: what is sent may get lost, and so may its answer; either may take its time, and what was
 * sent may arrive again.
 */
export interface Wire {
  readonly storage: MemoryStorage
  /** Nothing of the process arrives any more, nor does it hear anything. */
  kill(): void
}

export interface WireParams {
  readonly storage: MemoryStorage
  readonly clock: FakeClock
  readonly random: Random
  /** From 0, where nothing goes wrong. */
  readonly faults: number
}

/** Longer than a lead lasts. */
const LONGEST_DELAY_MS = 40_000

export function wired({ storage, clock, random, faults }: WireParams): Wire {
  let isDead = false
  const forEver = new Promise<never>(() => {})
  const delay = () => {
    if (random() >= faults) return undefined
    const ms = Math.floor(random() * LONGEST_DELAY_MS)
    return new Promise<void>((resolve) => clock.schedule(ms, resolve))
  }
  const lost = () => new StorageError('STORAGE_UNAVAILABLE', 'The connection was lost.')
  const send = async <T>(call: () => Promise<T>): Promise<T> => {
    await delay()
    if (isDead) return forEver
    if (random() < faults) throw lost()
    const answer = await call()
    if (random() < faults / 2) clock.schedule(random() * LONGEST_DELAY_MS, () => void call().catch(() => {}))
    await delay()
    if (isDead) return forEver
    if (random() < faults) throw lost()
    return answer
  }
  const through = <T extends object>(group: T): T => {
    const entries = Object.entries(group).map(([name, value]) => [
      name,
      typeof value === 'function'
        ? (...args: readonly unknown[]) =>
            send(() => (value as (...all: readonly unknown[]) => Promise<unknown>)(...args))
        : through(value as object),
    ])
    return Object.fromEntries(entries) as T
  }
  const kill = () => {
    isDead = true
  }
  const { cluster, debounce, enqueue } = storage
  return { storage: { ...storage, ...through({ cluster, debounce, enqueue }) }, kill }
}
