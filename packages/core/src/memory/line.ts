import { Heap, type HeapItem } from './heap'
import { type Positions, GapList } from './gap-list'

/** Positions in the list count down from −2, those in the heap up from 0; −1 is nowhere. So one number tells both. */
const IN_LIST: Positions<HeapItem> = {
  of: ({ position }) => -2 - position,
  set: (item, position) => {
    item.position = -2 - position
  },
}

/**
 * Who is next of many, in O(1) for those who arrive in their order, as most do. Those who come late for it wait in a
 * heap, and the next one is the earlier of the two that are first.
 */
export class Line<T extends HeapItem> {
  readonly #isBefore: (a: T, b: T) => boolean
  readonly #inOrder = new GapList<T>(IN_LIST)
  readonly #late: Heap<T>

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
    this.#late = new Heap(isBefore)
  }

  get size(): number {
    return this.#inOrder.size + this.#late.size
  }

  peek(): T | undefined {
    const { first } = this.#inOrder
    const late = this.#late.peek()
    if (first === undefined || late === undefined) return first ?? late
    return this.#isBefore(late, first) ? late : first
  }

  push(item: T): void {
    const { last } = this.#inOrder
    if (last === undefined || !this.#isBefore(item, last)) this.#inOrder.append(item)
    else this.#late.push(item)
  }

  /** Does nothing if the item is not here. */
  remove(item: T): void {
    if (item.position >= 0) this.#late.remove(item)
    else if (item.position < -1) this.#inOrder.remove(item)
  }
}
