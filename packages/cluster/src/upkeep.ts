import type { Durably } from '@coji/durably-core'
import type { ClusterStorage, Lead } from '@coji/durably-core/storage'

export const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
export const AT_ONCE = 500

/** Removes what is old, so many at a time until there is no more of it. */
export async function removeAll({ drafts }: Durably, remove: (limit: number) => Promise<number>): Promise<number> {
  let removed = 0
  for (;;) {
    const some = await remove(AT_ONCE)
    removed += some
    if (some < AT_ONCE) return removed
    await drafts.breathe()
  }
}

interface Upkeep {
  readonly durably: Durably
  readonly cluster: ClusterStorage<never>
  remove(lead: Lead, limit: number): Promise<number>
}

/** Removes what is old at the first turn, and once an hour from then on: some at each turn, until there is no more of it. */
export function hourly({ durably, cluster, remove }: Upkeep) {
  const { clock } = durably.drafts.environment
  let doneAt = Number.NEGATIVE_INFINITY
  return {
    /** Milliseconds until there is more to remove; `null`: nothing is known of. */
    async turn(lead: Lead): Promise<number | null> {
      if (clock.monotonic() - doneAt < HOUR_MS) return null
      const removed = await remove(lead, AT_ONCE)
      if (removed >= AT_ONCE) return 0
      // Without the lead nothing is removed, however much there is.
      if (await isHeld(cluster, lead)) doneAt = clock.monotonic()
      return null
    },
  }
}

async function isHeld(cluster: ClusterStorage<never>, { name, workerId, epoch }: Lead): Promise<boolean> {
  const now = await cluster.getLead(name)
  return now?.workerId === workerId && now.epoch === epoch
}
