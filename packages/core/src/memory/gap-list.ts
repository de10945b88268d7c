/** The position of what was in no list yet. */
export const NOWHERE = -1

/** Where an item keeps the number of its position, for the list to read and write. */
export interface Positions<T> {
  of(item: T): number
  set(item: T, position: number): void
}

/** Holes are borne up to this many, so that a short list is not moved all the time. */
const SLACK = 64

/**
 * Items one after another. One that is taken out leaves an empty position that is skipped, so that adding at the end and
 * taking from anywhere cost O(1); the list closes up when more than half of it is empty.
 */
export class GapList<T extends object> {
  readonly #positions: Positions<T>
  #slots: (T | undefined)[] = []
  /** Where the first item is. There is none behind the last one: both ends are kept clean. */
  #start = 0
  /** The position of the first slot: it moves on when the front is cut off, so that no item has to be told. */
  #base = 0
  #size = 0

  constructor(positions: Positions<T>) {
    this.#positions = positions
  }

  get size(): number {
    return this.#size
  }

  /** Positions, empty ones included. */
  get width(): number {
    return this.#slots.length
  }

  get first(): T | undefined {
    return this.#slots[this.#start]
  }

  get last(): T | undefined {
    return this.#slots[this.#slots.length - 1]
  }

  append(item: T): void {
    this.#positions.set(item, this.#base + this.#slots.length)
    this.#slots.push(item)
    this.#size += 1
  }

  /** Behind the last item that does not come after it. Cheap when that is near the end. */
  insert(item: T, isBefore: (a: T, b: T) => boolean): void {
    let index = this.#slots.length
    for (; index > this.#start; index--) {
      const other = this.#slots[index - 1]
      if (other !== undefined && !isBefore(item, other)) break
    }
    if (index === this.#slots.length) this.append(item)
    else {
      this.#slots.splice(index, 0, item)
      this.#size += 1
      this.#number(index)
    }
  }

  /** Does nothing if the item is not here. */
  has(item: T): boolean {
    return this.#slots[this.#positions.of(item) - this.#base] === item
  }

  remove(item: T): void {
    if (!this.has(item)) return
    const index = this.#positions.of(item) - this.#base
    this.#slots[index] = undefined
    this.#size -= 1
    this.#cleanEnds()
    if (this.#start > SLACK && 2 * this.#start > this.#slots.length) this.#cutFront()
    if (this.#slots.length - this.#start > 2 * this.#size + SLACK) this.#closeUp()
  }

  *forwards(): Iterable<T> {
    for (let index = this.#start; index < this.#slots.length; index++) {
      const item = this.#slots[index]
      if (item !== undefined) yield item
    }
  }

  /** From the last item that is `within` to the first: all before it must be, and none behind it. */
  *backwards(within: (item: T) => boolean): Iterable<T> {
    for (let index = this.#endOf(within) - 1; index >= this.#start; index--) {
      const item = this.#slots[index]
      if (item !== undefined) yield item
    }
  }

  #endOf(within: (item: T) => boolean): number {
    let [low, high] = [this.#start, this.#slots.length]
    while (low < high) {
      const middle = (low + high) >> 1
      let index = middle
      while (index < high && this.#slots[index] === undefined) index += 1
      const item = index < high ? this.#slots[index] : undefined
      if (item !== undefined && within(item)) low = index + 1
      else high = middle
    }
    return low
  }

  #cleanEnds(): void {
    while (this.#slots.length > 0 && this.last === undefined) this.#slots.pop()
    while (this.#start < this.#slots.length && this.first === undefined) this.#start += 1
    if (this.#size === 0) this.#start = 0
  }

  #cutFront(): void {
    this.#slots = this.#slots.slice(this.#start)
    this.#base += this.#start
    this.#start = 0
  }

  #closeUp(): void {
    this.#slots = this.#slots.filter((item) => item !== undefined)
    this.#start = 0
    this.#number(0)
  }

  #number(from: number): void {
    for (let index = from; index < this.#slots.length; index++) {
      const item = this.#slots[index]
      if (item !== undefined) this.#positions.set(item, this.#base + index)
    }
  }
}
