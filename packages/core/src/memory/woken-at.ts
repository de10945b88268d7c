import type { Instant, RunRecord } from '../port'
import { earliest } from './clock'

type Suspended = Pick<RunRecord, 'createdAt' | 'availableAt' | 'wakes' | 'wakesWanted' | 'restUntil'>

/** When a suspended run is due that children have woken: when its rest is over, or at once if they were all it waits for. */
export function wokenAt({ createdAt, availableAt, wakes, wakesWanted, restUntil }: Suspended, now: Instant): Instant {
  if (restUntil === null || restUntil <= now || wakes >= wakesWanted) return createdAt
  return earliest([availableAt, restUntil]) ?? restUntil
}
