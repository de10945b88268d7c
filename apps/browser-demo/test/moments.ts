/**
 * Fractions of a duration, the same for the same seed: the first is its very beginning, the others lie anywhere in it.
 */
export function moments(count: number, seed: number): number[] {
  let state = seed >>> 0
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  return Array.from({ length: count }, (_, index) => (index === 0 ? 0 : next()))
}
