import { Row } from './row'
import type { RunEntry } from './run-entry'

/**
 * Ended runs in the order of ending, and which of them may be dropped, oldest first. A child stays with its parent until
 * that one has ended too: it may still ask for the output.
 */
export class EndedRuns {
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

  /** Those that are kept for a parent left out. */
  get droppableCount(): number {
    return this.#droppable.size
  }

  get oldestDroppable(): RunEntry | undefined {
    return this.#droppable.first
  }

  oldestFirst(): Iterable<RunEntry> {
    return this.#inOrder.forwards()
  }

  add(entry: RunEntry, liveParent: RunEntry | undefined): void {
    this.#inOrder.insert(entry, endedBefore)
    for (const child of entry.keptChildren ?? []) this.#droppable.append(child)
    entry.keptChildren = null
    if (liveParent === undefined) this.#droppable.append(entry)
    else liveParent.keptChildren = (liveParent.keptChildren ?? new Set()).add(entry)
  }

  /** The run was removed, or goes on. */
  forget(entry: RunEntry, parent: RunEntry | undefined): void {
    parent?.keptChildren?.delete(entry)
    this.#inOrder.remove(entry)
    this.#droppable.remove(entry)
  }
}

function endedBefore({ record: a }: RunEntry, { record: b }: RunEntry): boolean {
  return a.finishedAt === b.finishedAt ? a.id < b.id : (a.finishedAt ?? '') < (b.finishedAt ?? '')
}
