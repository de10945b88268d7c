import { describe, expect, it } from 'vitest'
import { createRandom } from '../testing/simulation/random'
import { Line } from './line'
import { GapList, NOWHERE } from './gap-list'

class Item {
  listedAt = NOWHERE
  position = NOWHERE
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

const isBefore = (a: Item, b: Item) => a.value < b.value
const sorted = (items: Iterable<Item>) => [...items].sort((a, b) => a.value - b.value)
const valuesOf = (items: Iterable<Item>) => Array.from(items, ({ value }) => value)

function newGapList(): GapList<Item> {
  return new GapList({
    of: ({ listedAt }) => listedAt,
    set: (item, listedAt) => {
      item.listedAt = listedAt
    },
  })
}

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]

describe('a line', () => {
  it.each(SEEDS)('has the same head as a sorted list, for seed %i', (seed) => {
    const random = createRandom(seed)
    const line = new Line<Item>(isBefore)
    const inside = new Set<Item>()
    const outside: Item[] = []
    const leave = (item: Item | undefined) => {
      if (item === undefined) return
      line.remove(item)
      inside.delete(item)
      outside.push(item)
    }
    const enter = (item: Item | undefined) => {
      if (item === undefined) return
      line.push(item)
      inside.add(item)
    }
    for (let step = 0; step < 3000; step++) {
      const isGrowing = step % 1000 < 500
      const what = random.weighted({ arrive: isGrowing ? 6 : 2, late: 1, take: isGrowing ? 2 : 6, leave: 2, back: 1 })
      if (what === 'arrive') enter(new Item(step))
      if (what === 'late') enter(new Item(random.next() * step))
      if (what === 'take') leave(line.peek())
      if (what === 'leave') leave(random.pickAny([...inside]))
      if (what === 'back') enter(outside.splice(random.int(outside.length), 1)[0])
      expect(line.peek()).toBe(sorted(inside)[0])
      expect(line.size).toBe(inside.size)
    }
    const given: Item[] = []
    for (let item = line.peek(); item !== undefined; item = line.peek()) {
      line.remove(item)
      given.push(item)
    }
    expect(given).toEqual(sorted(inside))
  })

  it('takes nothing out twice, and nothing that is in another line', () => {
    const [line, other] = [new Line<Item>(isBefore), new Line<Item>(isBefore)]
    const items = [2, 1, 4, 3].map((value) => new Item(value))
    for (const item of items.slice(0, 2)) line.push(item)
    for (const item of items.slice(2)) other.push(item)
    for (const item of items) line.remove(item)
    for (const item of items) line.remove(item)
    expect([line.size, other.size]).toEqual([0, 2])
    expect(other.peek()?.value).toBe(3)
  })
})

describe('a list', () => {
  it.each(SEEDS)('keeps its order while items come and go, for seed %i', (seed) => {
    const random = createRandom(seed)
    const list = newGapList()
    let expected: Item[] = []
    for (let step = 0; step < 2000; step++) {
      const isGrowing = step % 1000 < 500
      const what = random.weighted({ insert: isGrowing ? 5 : 2, remove: isGrowing ? 1 : 4, pop: 1 })
      if (what === 'insert') {
        const item = new Item(step - random.int(20))
        list.insert(item, isBefore)
        expected = sorted([...expected, item])
      } else {
        const gone = what === 'pop' ? expected[0] : random.pickAny(expected)
        if (gone !== undefined) list.remove(gone)
        expected = expected.filter((item) => item !== gone)
      }
      if (step % 20 > 0) continue
      const below = random.int(step + 1)
      expect(valuesOf(list.forwards())).toEqual(valuesOf(expected))
      const older = expected.filter(({ value }) => value < below).reverse()
      expect(valuesOf(list.backwards(({ value }) => value < below))).toEqual(valuesOf(older))
    }
    expect([list.first, list.last, list.size]).toEqual([expected[0], expected.at(-1), expected.length])
  })

  it.each([
    { who: 'the first', isKept: (value: number) => value === 0 },
    { who: 'the last', isKept: (value: number) => value === 9999 },
    { who: 'a few', isKept: (value: number) => value % 1000 === 500 },
    { who: 'nobody', isKept: () => false },
  ])('closes up when $who is left', ({ isKept }) => {
    const list = newGapList()
    const items = Array.from({ length: 10_000 }, (_, value) => new Item(value))
    for (const item of items) list.append(item)
    for (const item of items) if (!isKept(item.value)) list.remove(item)
    expect(valuesOf(list.forwards())).toEqual(valuesOf(items).filter(isKept))
    expect(list.width).toBeLessThan(200)
  })

  it('does not grow with what goes through it', () => {
    const list = newGapList()
    list.append(new Item(-1))
    for (let value = 0; value < 10_000; value++) {
      const item = new Item(value)
      list.append(item)
      list.remove(item)
    }
    const waiting: Item[] = []
    for (let value = 0; value < 10_000; value++) {
      const item = new Item(value)
      list.append(item)
      waiting.push(item)
      const first = waiting.length > 10 ? waiting.shift() : undefined
      if (first !== undefined) list.remove(first)
    }
    expect(list.width).toBeLessThan(200)
  })
})
