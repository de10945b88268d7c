import { isEnded } from '../base'
import { GapList } from './gap-list'
import type { RunEntry } from './run-entry'

/** The runs that wait for this one, or may come to. */
type ParentsOf = (entry: RunEntry) => readonly RunEntry[]

/**
 * Ended runs in the order of ending, and which of them may be dropped, oldest first. A child stays with those that wait
 * for it until they have ended too: they may still ask for the output.
 */
export class EndedRuns {
  readonly #parentsOf: ParentsOf
  readonly #inOrder = new GapList<RunEntry>({
    of: ({ endedPosition }) => endedPosition,
    set: (entry, position) => {
      entry.endedPosition = position
    },
  })
  readonly #droppable = new GapList<RunEntry>({
    of: ({ droppablePosition }) => droppablePosition,
    set: (entry, position) => {
      entry.droppablePosition = position
    },
  })

  constructor(parentsOf: ParentsOf) {
    this.#parentsOf = parentsOf
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
    for (const child of entry.endedChildren ?? []) if (child.keeper === entry) this.#keep(child)
    // Nobody retries it by hand.
    if (entry.record.status === 'completed') entry.endedChildren = null
    this.#keep(entry)
  }

  /** One more run waits for an ended one. */
  keepLonger(entry: RunEntry): void {
    if (entry.keeper !== null) return
    this.#droppable.remove(entry)
    this.#keep(entry)
  }

  /** The run goes on, and may ask for its children again. */
  revive(entry: RunEntry): void {
    this.forget(entry)
    for (const child of entry.endedChildren ?? []) if (this.#inOrder.has(child)) this.keepLonger(child)
  }

  /** The run was removed, or goes on. */
  forget(entry: RunEntry): void {
    for (const parent of this.#parentsOf(entry)) parent.endedChildren?.delete(entry)
    entry.keeper = null
    this.#inOrder.remove(entry)
    this.#droppable.remove(entry)
  }

  #keep(entry: RunEntry): void {
    const parents = this.#parentsOf(entry)
    for (const parent of parents) {
      if (parent.record.status !== 'completed') parent.endedChildren = (parent.endedChildren ?? new Set()).add(entry)
    }
    entry.keeper = parents.find(isLive) ?? null
    if (entry.keeper === null) this.#droppable.append(entry)
  }
}

export function isLive({ record }: RunEntry): boolean {
  return !isEnded(record.status)
}

function endedBefore({ record: a }: RunEntry, { record: b }: RunEntry): boolean {
  return a.finishedAt === b.finishedAt ? a.id < b.id : (a.finishedAt ?? '') < (b.finishedAt ?? '')
}
