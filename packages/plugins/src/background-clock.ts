import type { Clock } from '@coji/durably-core'

/** A longer delay would fire at once; looking once more than asked for does no harm. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Timers that do not keep a process alive by themselves, where the platform knows the difference. */
export const backgroundClock: Pick<Clock, 'schedule'> = {
  schedule(ms, fn) {
    const timer = setTimeout(fn, Math.min(ms, LONGEST_TIMER_MS))
    // Browsers hand out numbers.
    if (typeof timer === 'object') timer.unref()
    return () => clearTimeout(timer)
  },
}
