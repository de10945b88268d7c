import { PARTS } from './sample'

/** When an import is interrupted. */
export type Moment =
  /** After this share of its duration, which may be before its first step, or a little after its last. */
  | { readonly kind: 'time'; readonly share: number }
  /** Once this part has begun, and then after this share of a part's time: always in the middle. */
  | { readonly kind: 'part'; readonly part: number; readonly share: number }

/** The same for the same seed: the very beginning, then by turns any part but the first, and any time. */
export function moments(count: number, seed: number): Moment[] {
  let state = seed >>> 0
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  return Array.from({ length: count }, (_, index) => {
    if (index === 0) return { kind: 'time', share: 0 }
    if (index % 2 === 0) return { kind: 'time', share: next() }
    return { kind: 'part', part: 2 + Math.floor(next() * (PARTS - 1)), share: next() }
  })
}
