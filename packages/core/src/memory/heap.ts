/** An item knows its place in the one heap it is in, so that it can be taken out of the middle. */
export interface HeapItem {
  position: number
}

/** A binary heap whose items can be removed from anywhere in O(log n). */
export class Heap<T extends HeapItem> {
  readonly #items: T[] = []
  readonly #isBefore: (a: T, b: T) => boolean

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  remove(item: T): void {
    const position = item.position
    if (this.#items[position] !== item) return
    const last = this.#items.pop()
    item.position = -1
    if (last === undefined || last === item) return
    this.#rise(last, position)
    if (last.position === position) this.#sink(last, position)
  }

  #rise(item: T, start: number): void {
    let position = start
    while (position > 0) {
      const parent = this.#items[(position - 1) >> 1]
      if (parent === undefined || !this.#isBefore(item, parent)) break
      this.#put(parent, position)
      position = (position - 1) >> 1
    }
    this.#put(item, position)
  }

  #sink(item: T, start: number): void {
    let position = start
    for (;;) {
      const child = this.#firstChild(position)
      if (child === undefined || !this.#isBefore(child, item)) break
      const next = child.position
      this.#put(child, position)
      position = next
    }
    this.#put(item, position)
  }

  #firstChild(position: number): T | undefined {
    const left = this.#items[2 * position + 1]
    const right = this.#items[2 * position + 2]
    return left !== undefined && right !== undefined && this.#isBefore(right, left) ? right : left
  }

  #put(item: T, position: number): void {
    this.#items[position] = item
    item.position = position
  }
}
