/** Longer than anything of a page that is gone can still be on its way. */
const KEPT_MS = 60_000

/** Word that pages leave when they go away on purpose, for those that find their runs. */
export interface Farewells {
  /** At once: there is no later. */
  leave(workerId: string): void
  takeBack(workerId: string): void
  has(workerId: string): boolean
  /** Forgets what nobody will ask for any more: old word of workers that have no run. */
  sweep(owners: ReadonlySet<string>): void
}

/**
 * In `localStorage`, the one place where a page can still write in its last moment. Where there is none (a worker, a full
 * one, a browser that forbids it) nothing is left, and going away looks like a crash. Each worker has an item of its own:
 * pages that go at the same time do not overwrite each other.
 */
export function createFarewells(group: string): Farewells {
  const prefix = `durably:left:${group}:`
  return {
    leave: (workerId) => inStorage((items) => items.setItem(prefix + workerId, String(Date.now())), undefined),
    takeBack: (workerId) => inStorage((items) => items.removeItem(prefix + workerId), undefined),
    has: (workerId) => inStorage((items) => items.getItem(prefix + workerId) !== null, false),
    sweep: (owners) =>
      inStorage((items) => {
        for (const key of Object.keys(items)) {
          if (!key.startsWith(prefix) || owners.has(key.slice(prefix.length))) continue
          if (!(Math.abs(Date.now() - Number(items.getItem(key))) < KEPT_MS)) items.removeItem(key)
        }
      }, undefined),
  }
}

function inStorage<T>(use: (items: Storage) => T, otherwise: T): T {
  try {
    return typeof localStorage === 'undefined' ? otherwise : use(localStorage)
  } catch {
    return otherwise
  }
}
