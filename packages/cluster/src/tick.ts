import type { Durably } from '@coji/durably-core'
import type { ClusterStorage, FiringAnswer, Lead } from '@coji/durably-core/storage'
import { type FiringPlan, planFiring } from './firing'

export interface TickParams {
  readonly durably: Durably
  readonly cluster: ClusterStorage
}

/** What one look at the schedules led to. */
export interface TickResult {
  /** How many runs were created. */
  readonly fired: number
  /** Until the next instant; `null` without one. */
  readonly nextInMs: number | null
  /** Somebody else has moved them on. */
  readonly isLost: boolean
}

/** Schedules that are looked at together, and runs that are written together. */
const SCHEDULES_AT_ONCE = 1000
const RUNS_AT_ONCE = 1000

/** Fires what has come, as long as there is something. */
export async function tick({ durably, cluster }: TickParams, lead: Lead): Promise<TickResult> {
  let fired = 0
  for (;;) {
    const { now, schedules, nextInMs } = await cluster.schedules.due(SCHEDULES_AT_ONCE)
    const plans = schedules.flatMap((due) => planFiring(durably.drafts, due, now) ?? [])
    let kept = 0
    for (const together of inBatches(plans)) {
      const answers = await cluster.schedules.fire(
        lead,
        together.map(({ firing }) => firing),
      )
      for (const [index, plan] of together.entries()) announce(durably, plan, answers[index] as FiringAnswer)
      const keptPlans = together.filter((_plan, index) => answers[index]?.kept === true)
      fired += answers.reduce((sum, { created }) => sum + created.length, 0)
      kept += keptPlans.length
      // Who has lost the lead must not end a run for a firing that is refused. The new run waits for it until then.
      for (const runId of keptPlans.flatMap(({ toCancel }) => toCancel)) await makeWay(durably, runId)
    }
    const isLost = plans.length > 0 && kept === 0
    if (isLost || schedules.length < SCHEDULES_AT_ONCE) {
      return { fired, nextInMs: isLost ? 0 : soonest(nextInMs, plans, now), isLost }
    }
  }
}

/** What was moved on is not among what is left. */
function soonest(nextInMs: number | null, plans: readonly FiringPlan[], now: string): number | null {
  const waits = plans.flatMap(({ firing: { nextAt } }) => {
    return nextAt === null ? [] : [Math.max(0, Date.parse(nextAt) - Date.parse(now))]
  })
  const first = Math.min(nextInMs ?? Number.POSITIVE_INFINITY, ...waits)
  return Number.isFinite(first) ? first : null
}

function inBatches(plans: readonly FiringPlan[]): readonly (readonly FiringPlan[])[] {
  const batches: FiringPlan[][] = []
  let runs = RUNS_AT_ONCE
  for (const plan of plans) {
    if (runs >= RUNS_AT_ONCE) {
      batches.push([])
      runs = 0
    }
    batches.at(-1)?.push(plan)
    runs += plan.firing.runs.length
  }
  return batches
}

/** It may have ended meanwhile. */
async function makeWay(durably: Durably, runId: string): Promise<void> {
  try {
    await durably.cancel(runId)
  } catch (error) {
    const { code } = Object(error) as { readonly code?: unknown }
    if (code !== 'CONFLICT' && code !== 'NOT_FOUND') throw error
  }
}

/** Of a firing that somebody else was faster with there is nothing to tell. */
function announce(durably: Durably, { schedule, firing, missed }: FiringPlan, answer: FiringAnswer): void {
  if (!answer.kept) return
  const { name: scheduleName, tenant, jobName } = schedule
  const own = { scheduleName, tenant, jobName }
  for (const instants of missed) durably.emit({ type: 'schedule:missed', ...own, ...instants })
  const created = firing.runs.filter(({ id }) => answer.created.includes(id))
  for (const { id: runId, scheduledFor } of created) {
    durably.emit({ type: 'schedule:fired', ...own, runId, scheduledFor: scheduledFor ?? '' })
  }
  durably.drafts.announce(created)
}
