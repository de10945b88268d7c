import { hostProcess } from './host-process.ts'

export type Scale = 'quick' | 'full'

/** How long the suites run: `quick` on every change, `full` for `npm run test:full`. Read here and nowhere else. */
export const SCALE: Scale = hostProcess.env['DURABLY_SCALE'] === 'full' ? 'full' : 'quick'

/** The count of the lane that is running: `scaled({ quick: 20, full: 500 })`. */
export function scaled(counts: Readonly<Record<Scale, number>>): number {
  return counts[SCALE]
}

/** All of them; in the quick lane only those that stand for the others. */
export function inLane<T>(all: readonly T[], stands: (one: T) => boolean): readonly T[] {
  return SCALE === 'full' ? all : all.filter(stands)
}
