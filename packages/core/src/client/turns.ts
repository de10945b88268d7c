import { atMost } from '../base'
import type { Engine } from '../engine'

/** From its beginning; then the one behind it goes on beside it. */
const LONGEST_TURN_MS = 5000

const turnsOf = new WeakMap<Engine['storage'], Map<string, Promise<void>>>()

/**
 * Writes of one key, in the order in which they are asked for. On several connections they would overtake each other, and keep
 * all of them waiting for one row.
 */
export async function inTurn<T>(
  { storage, environment }: Pick<Engine, 'storage' | 'environment'>,
  key: readonly string[],
  write: () => Promise<T>,
): Promise<T> {
  const turns = turnsOf.get(storage) ?? new Map<string, Promise<void>>()
  turnsOf.set(storage, turns)
  const name = JSON.stringify(key)
  const before = turns.get(name)
  const written = before === undefined ? write() : before.then(write)
  const ended = written.then(
    () => {},
    () => {},
  )
  const over = (before ?? Promise.resolve()).then(() => atMost(environment.clock, LONGEST_TURN_MS, ended))
  turns.set(name, over)
  try {
    return await written
  } finally {
    if (turns.get(name) === over) turns.delete(name)
  }
}
