import { Row } from './row'
import type { RunEntry } from './run-entry'

/** A run that has not ended and waits for this one, or may come to. */
type KeeperOf = (entry: RunEntry) => RunEntry | undefined

/**
 * Ended runs in the order of ending, and which of them may be dropped, oldest first. A child stays with those that wait
 * for it until they have ended too: they may still ask for the output.
 */
export class EndedRuns {
  readonly #keeperOf: KeeperOf
  readonly #inOrder = new Row<RunEntry>({
    of: ({ endedPlace }) => endedPlace,
    set: (entry, place) => {
      entry.endedPlace = place
    },
  })
  readonly #droppable = new Row<RunEntry>({
    of: ({ droppablePlace }) => droppablePlace,
    set: (entry, place) => {
      entry.droppablePlace = place
    },
  })

  constructor(keeperOf: KeeperOf) {
    this.#keeperOf = keeperOf
  }

  /** Those that are kept for another run left out. */
  get droppableCount(): number {
    return this.#droppable.size
  }

  get oldestDroppable(): RunEntry | undefined {
    return this.#droppable.first
  }

  oldestFirst(): Iterable<RunEntry> {
    return this.#inOrder.forwards()
  }

  add(entry: RunEntry): void {
    this.#inOrder.insert(entry, endedBefore)
    const kept = entry.keptChildren ?? []
    entry.keptChildren = null
    for (const child of kept) this.#keep(child)
    this.#keep(entry)
  }

  /** One more run waits for an ended one. */
  keepLonger(entry: RunEntry): void {
    if (entry.keeper !== null) return
    this.#droppable.remove(entry)
    this.#keep(entry)
  }

  /** The run was removed, or goes on. */
  forget(entry: RunEntry): void {
    entry.keeper?.keptChildren?.delete(entry)
    entry.keeper = null
    this.#inOrder.remove(entry)
    this.#droppable.remove(entry)
  }

  #keep(entry: RunEntry): void {
    const keeper = this.#keeperOf(entry)
    entry.keeper = keeper ?? null
    if (keeper === undefined) this.#droppable.append(entry)
    else keeper.keptChildren = (keeper.keptChildren ?? new Set()).add(entry)
  }
}

function endedBefore({ record: a }: RunEntry, { record: b }: RunEntry): boolean {
  return a.finishedAt === b.finishedAt ? a.id < b.id : (a.finishedAt ?? '') < (b.finishedAt ?? '')
}
