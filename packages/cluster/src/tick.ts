import type { Durably } from '@coji/durably-core'
import type {
  ClusterStorage,
  DueSchedule,
  EndingEvents,
  FiringAnswer,
  Lead,
  RunRecord,
  ScheduleRecord,
} from '@coji/durably-core/storage'
import { type FiringPlan, planFiring } from './firing'
import { soonest } from './duty'

export interface TickParams {
  readonly durably: Durably
  readonly cluster: ClusterStorage
}

/** What one look at the schedules led to. */
export interface TickResult {
  /** How many runs were created. */
  readonly fired: number
  /** How many schedules could not fire, for somebody has locked what they change. */
  readonly busy: number
  /** Those that this process cannot read, such as one of a zone that its tables do not have. */
  readonly unread: readonly UnreadSchedule[]
  /** Until the next instant, or until what was busy may be free; `null` without either. */
  readonly nextInMs: number | null
  /** Somebody else has moved them on. */
  readonly isLost: boolean
}

/** One that others may be able to fire. */
export interface UnreadSchedule {
  readonly schedule: ScheduleRecord
  readonly error: unknown
}

/** Schedules that are looked at together, and runs that are written together. */
const SCHEDULES_AT_ONCE = 1000
const RUNS_AT_ONCE = 1000
const AFTER_BUSY_MS = 1000

/** Fires what has come, as long as there is something. */
export async function tick(params: TickParams, lead: Lead): Promise<TickResult> {
  const { cluster } = params
  const busy = new Set<string>()
  const unread = new Map<string, UnreadSchedule>()
  let fired = 0
  for (;;) {
    // What does not fire stays due: it comes again with each look, and must leave room for the others.
    const known = busy.size + unread.size
    const limit = SCHEDULES_AT_ONCE + known
    const { now, schedules, nextInMs } = await cluster.schedules.due(limit)
    const plans = schedules
      .filter(({ schedule }) => !busy.has(schedule.id) && !unread.has(schedule.id))
      .flatMap((due) => {
        const { plan, error } = tryToPlan(params, due, now)
        if (plan === undefined) unread.set(due.schedule.id, { schedule: due.schedule, error })
        return plan ?? []
      })
    const made = await fireAll(params, lead, plans)
    fired += made.created
    for (const scheduleId of made.busy) busy.add(scheduleId)
    const isLost = made.kept === 0 && plans.length > made.busy.length
    const hasNews = made.kept > 0 || busy.size + unread.size > known
    if (isLost || !hasNews || schedules.length < limit) {
      const waits = [nextInMs, ...waitsOf(plans, now), busy.size > 0 ? AFTER_BUSY_MS : null]
      const nextIn = isLost ? 0 : soonest(waits)
      return { fired, busy: busy.size, unread: [...unread.values()], nextInMs: nextIn, isLost }
    }
  }
}

/** One that cannot be read keeps no other from firing. */
function tryToPlan({ durably }: TickParams, due: DueSchedule, now: string) {
  try {
    return { plan: planFiring(durably.drafts, due, now) }
  } catch (error) {
    return { error }
  }
}

interface Fired {
  created: number
  kept: number
  /** Ids of their schedules. */
  readonly busy: string[]
}

async function fireAll({ durably, cluster }: TickParams, lead: Lead, plans: readonly FiringPlan[]): Promise<Fired> {
  const made: Fired = { created: 0, kept: 0, busy: [] }
  const events = endingEvents(durably)
  for (const together of inBatches(plans)) {
    const firings = together.map(({ firing }) => firing)
    const answers = await cluster.schedules.fire(lead, firings, events)
    for (const [index, plan] of together.entries()) announce(durably, plan, answers[index] as FiringAnswer)
    made.created += answers.reduce((sum, { created }) => sum + created.length, 0)
    made.kept += answers.filter(({ kept }) => kept).length
    made.busy.push(...firings.filter((_firing, index) => answers[index]?.isBusy).map(({ scheduleId }) => scheduleId))
    await durably.drafts.breathe()
  }
  return made
}

/** What was moved on is not among what is left. */
function waitsOf(plans: readonly FiringPlan[], now: string): readonly number[] {
  return plans.flatMap(({ firing: { nextAt } }) => {
    return nextAt === null ? [] : [Math.max(0, Date.parse(nextAt) - Date.parse(now))]
  })
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
    runs += plan.firing.runs.length + plan.firing.ends.length
  }
  return batches
}

function endingEvents({ drafts }: Durably): EndingEvents {
  const event = { type: 'run:cancel', runId: '', jobName: '' } as const
  return {
    cancelled: drafts.recorded({ ...event, requested: false }),
    requested: drafts.recorded({ ...event, requested: true }),
  }
}

/** Of a firing that somebody else was faster with there is nothing to tell. */
function announce(durably: Durably, { schedule, firing, missed }: FiringPlan, answer: FiringAnswer): void {
  if (!answer.kept) return
  const { name: scheduleName, tenant, jobName } = schedule
  const own = { scheduleName, tenant, jobName }
  for (const instants of missed) durably.emit({ type: 'schedule:missed', ...own, ...instants })
  for (const run of answer.ended) announceEnd(durably, run)
  const created = firing.runs.filter(({ id }) => answer.created.includes(id))
  for (const { id: runId, scheduledFor } of created) {
    durably.emit({ type: 'schedule:fired', ...own, runId, scheduledFor: scheduledFor ?? '' })
  }
  durably.drafts.announce(created)
}

/** One that runs is to end as soon as its worker hears of it. */
function announceEnd(durably: Durably, { id: runId, jobName, status }: RunRecord): void {
  durably.emit({ type: 'run:cancel', runId, jobName, requested: status === 'running' })
}
