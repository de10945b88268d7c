import type { ClaimParams, JobLimits, RunRecord } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Executor } from '../connection'
import { list, type Sql, type SqlContext } from '../statement'

/** What was taken, and whether somebody else kept this claim from more. */
export interface Taken {
  readonly runs: readonly RunRecord[]
  readonly isHeldUp: boolean
}

/** Claims due runs, in order; under the limits of the one job that is asked for, if there are any. */
export type Take = (executor: Executor, params: ClaimParams, limits: JobLimits | null) => Promise<Taken>

export type TakeName = 'workerId' | 'claimToken' | 'leaseMs' | 'eventCount'

interface Start {
  readonly slot: Sql
  /** Of one that was assigned. */
  readonly leaderEpoch?: Sql
}

/** What a claim changes on the run `r`, or the start of one that was assigned. */
export function startOfExecution(
  { dialect }: SqlContext,
  p: (name: TakeName) => Sql,
  { slot, leaderEpoch = sql`null` }: Start,
): Sql {
  const deadline = sql`case when r.deadline_at is null and r.timeout_ms is not null
    then ${dialect.nowPlus(sql`r.timeout_ms`)} else r.deadline_at end`
  return list(
    sql`status = 'running'`,
    sql`version = r.version + 1`,
    sql`lease_epoch = r.lease_epoch + 1`,
    sql`claim_token = ${p('claimToken')}`,
    sql`owner_id = ${p('workerId')}`,
    sql`lease_until = ${dialect.nowPlus(p('leaseMs'))}`,
    sql`leader_epoch = ${leaderEpoch}`,
    sql`commit_no = 0`,
    sql`concurrency_slot = case when r.concurrency_key is not null then coalesce(r.concurrency_slot, ${slot}) end`,
    sql`waiting_for = null`,
    sql`deadline_at = ${deadline}`,
    sql`started_at = coalesce(r.started_at, ${dialect.now})`,
    sql`heartbeat_at = ${dialect.now}`,
    sql`updated_at = ${dialect.now}`,
    sql`last_event_sequence = r.last_event_sequence + ${p('eventCount')}`,
  )
}

/** Jobs of which nobody claims runs, as a query. */
export function pausedJobs({ tables }: SqlContext): Sql {
  return sql`select q.job_name from ${tables.paused_jobs} as q`
}

/** How many slots are in use among those that the run's own limit allows. */
export function slotsTaken({ tables }: SqlContext, run: string): Sql {
  const of = (column: string) => sql.ref(`${run}.${column}`)
  return sql`(select count(*) from ${tables.runs} as a where a.concurrency_slot is not null and a.tenant = ${of('tenant')}
    and a.concurrency_key = ${of('concurrency_key')} and a.concurrency_slot < ${of('concurrency_limit')})`
}

export function inOrder(a: RunRecord, b: RunRecord): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  return compare(a.availableAt ?? '', b.availableAt ?? '') || compare(a.id, b.id)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
