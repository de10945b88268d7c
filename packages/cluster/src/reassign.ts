import type { Durably } from '@coji/durably-core'
import { type Lead, PATIENCE_WITH_THE_LIVING, type PlacementStorage } from '@coji/durably-core/storage'

export interface ReassignParams {
  readonly durably: Durably
  readonly placement: PlacementStorage
  readonly reassignAfterMs: number
}

const AT_ONCE = 200

/** Takes back what was assigned to workers that do not start it. Answers how many runs these are. */
export async function takeBackOverdue(params: ReassignParams, lead: Lead): Promise<number> {
  const { durably, placement, reassignAfterMs } = params
  const event = { type: 'run:orphan', runId: '', jobName: '', because: 'overdue' } as const
  let taken = 0
  for (;;) {
    const runs = await placement.orphan({
      lead,
      reassignAfterMs,
      livingAfterMs: reassignAfterMs * PATIENCE_WITH_THE_LIVING,
      limit: AT_ONCE,
      events: durably.drafts.recorded(event),
    })
    for (const { id: runId, jobName } of runs) durably.emit({ ...event, runId, jobName })
    taken += runs.length
    if (runs.length < AT_ONCE) return taken
  }
}
