/** Chance that comes out the same for the same seed, on every machine. */
export interface Random {
  /** From 0 up to 1. */
  next(): number
  /** An integer from 0 up to, not including, `below`. */
  int(below: number): number
  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(list: readonly [T, ...T[]]): T
  /** `undefined` only for an empty list. */
  pickAny<T>(list: readonly T[]): T | undefined
  /** A name, as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K
}

export function createRandom(seed: number): Random {
  const next = sfc32(seed)
  const int = (below: number) => Math.floor(next() * below)
  return {
    next,
    int,
    between: (low, high) => low + int(high - low + 1),
    chance: (probability) => next() < probability,
    pick: (list) => list[int(list.length)] ?? list[0],
    pickAny: (list) => list[int(list.length)],
    weighted(weights) {
      const names = Object.keys(weights) as (keyof typeof weights)[]
      let left = next() * names.reduce((sum, name) => sum + weights[name], 0)
      const chosen = names.find((name) => {
        left -= weights[name]
        return left < 0
      })
      return chosen ?? (names[0] as keyof typeof weights)
    },
  }
}

/** Chris Doty-Humphrey's small fast counter generator: three words of state and a counter. */
function sfc32(seed: number): () => number {
  let a = 0x9e3779b9
  let b = seed | 0
  let c = Math.floor(seed / 2 ** 32) ^ 0x243f6a88
  let counter = 1
  const next = () => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
  for (let round = 0; round < 12; round++) next()
  return next
}
