/** From 0 up to 1, the same for the same seed. */
export type Random = () => number

export function randomFrom(seed: number): Random {
  let state = (seed * 2654435761) >>> 0
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 3266489917) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
}

export function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)] as T
}
