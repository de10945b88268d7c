import { systemClock } from '../../base'

/** With a clock that stands still everything that can happen happens before the event loop turns. */
export function settle(): Promise<void> {
  return systemClock.turn?.() ?? Promise.resolve()
}
