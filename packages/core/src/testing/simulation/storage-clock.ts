import type { World } from './world'

/** The clock of the storage's machine, and what time it is for a storage that reads it. */
export interface StorageClock {
  /** What the storage reads. */
  read(): number
  /** What time it has. */
  now(): number
  /** The latest time that it may have had. */
  furthest(): number
  jump(byMs: number): void
}

interface StorageClockParams {
  readonly world: World
  readonly startMs: number
  /** Whether its time is set back with the clock; else it goes on from where it was. */
  readonly goesBack: boolean
}

export function createStorageClock({ world, startMs, goesBack }: StorageClockParams): StorageClock {
  let offset = startMs
  let furthestOffset = startMs
  let last = startMs
  let behind = 0
  const machineNow = () => Math.floor(world.now() + offset)
  const now = () => (goesBack ? machineNow() : Math.max(last, machineNow() + behind))
  return {
    now,
    read() {
      last = now()
      behind = last - machineNow()
      // Who measures the time since an answer is ahead of a storage whose clock was set back since.
      furthestOffset = Math.max(furthestOffset, offset + behind)
      return machineNow()
    },
    furthest: () => Math.max(now(), Math.floor(world.now() + furthestOffset)),
    jump(byMs) {
      offset += byMs
      furthestOffset = Math.max(furthestOffset, offset)
    },
  }
}
