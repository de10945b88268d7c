import type { Storage } from '../../port'
import { createRandom } from './random'

/** Scripts wait for few children, for which an engine lets nobody rest. In some seeds everybody does, for so long. */
export function restOf(seed: number): number {
  return createRandom(seed).pick([0, 0, 200, 1000])
}

export function withForgedRests(storage: Storage, restMs: number): Storage {
  if (restMs === 0) return storage
  return {
    ...storage,
    commit: (commits) =>
      storage.commit(
        commits.map((one) => {
          const { outcome } = one
          const waitsForChildren = outcome?.kind === 'suspend' && outcome.wakesWanted > outcome.wakesSeen
          return waitsForChildren ? { ...one, outcome: { ...outcome, restMs } } : one
        }),
      ),
  }
}
