import { LIFECYCLE, type RunStatus, SUSPECT_FROM, type TransitionName } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { SqlDialect } from '../dialect'
import type { Sql } from './statement'

/** What a holder shows for its lease, as SQL. */
export interface LeaseTerms {
  readonly runId: Sql
  readonly epoch: Sql
  readonly token: Sql
  readonly leaderEpoch: Sql
}

const BARE_STATUS = sql`(r.status || '')`

/**
 * Every condition under which a row of `runs` (alias `r`) may be written, by name. Writes use no others, so that the
 * tests can take each away and see it missed.
 */
export const FENCES = {
  'lease.status': (): Sql => statusIn(['commit', 'renew']),
  'lease.epoch': (lease: LeaseTerms): Sql => sql`r.lease_epoch = ${lease.epoch}`,
  'lease.token': (lease: LeaseTerms): Sql => sql`r.claim_token = ${lease.token}`,
  'lease.leaderEpoch': (lease: LeaseTerms, dialect: SqlDialect): Sql =>
    dialect.isSame(sql`r.leader_epoch`, lease.leaderEpoch),
  'lease.commitNo': (commitNo: Sql): Sql => sql`r.commit_no = ${commitNo} - 1`,

  /** The status as the indexes of waiting runs know it, or as none does. */
  'claim.status': (status: Sql): Sql => statusIn(['claim'], status),
  /**
   * With the instant of the last creation a run that is to start at once is due whatever the clock says: it may have been
   * set back. The first condition is for the index alone, which passes over all that wait for their time.
   */
  'claim.due': (dialect: SqlDialect, lastCreated?: Sql): Sql =>
    lastCreated === undefined
      ? sql`r.available_at <= ${dialect.now}`
      : sql`(r.available_at <= max(${dialect.now}, ${lastCreated})
          and (r.available_at <= ${dialect.now} or r.available_at = r.created_at))`,
  'claim.known': (jobs: Sql, dialect: SqlDialect): Sql => dialect.isOneOf(sql`r.job_name`, jobs),
  'claim.suspect': (takesSuspect: Sql): Sql => sql`(r.crash_count < ${sql.lit(SUSPECT_FROM)} or ${takesSuspect})`,
  'claim.slot': (slotsTaken: Sql): Sql =>
    sql`(r.concurrency_key is null or r.concurrency_slot is not null or ${slotsTaken} < r.concurrency_limit)`,

  'claim.paused': (paused: Sql, dialect: SqlDialect): Sql => dialect.isNoneOf(sql`r.job_name`, paused),
  'claim.concurrency': (running: Sql, concurrency: Sql): Sql =>
    sql`(${concurrency} is null or ${running} <= ${concurrency})`,
  'claim.rate': (hasRoom: Sql, maxStarts: Sql): Sql => sql`(${maxStarts} is null or ${hasRoom})`,

  'recover.status': (): Sql => statusIn(['recover']),
  'recover.expired': (dialect: SqlDialect, ahead?: Sql): Sql =>
    ahead === undefined ? sql`r.lease_until <= ${dialect.now}` : sql`(r.lease_until <= ${dialect.now} or ${ahead})`,
  'recover.owner': (workerId: Sql): Sql => sql`r.owner_id = ${workerId}`,
  'recover.notHeld': (held: Sql, dialect: SqlDialect): Sql =>
    sql`r.id not in (select value from ${dialect.listOf(held)})`,
  /** Recover and purge look first and write later. */
  'recover.unchanged': (version: Sql): Sql => sql`r.version = ${version}`,
  'purge.unneeded': (parent: Sql): Sql => sql`not exists (${parent} and parent.finished_at is null)`,
  'purge.unchanged': (seen: Sql, dialect: SqlDialect): Sql => dialect.isAmong(sql`(r.id || '/' || r.version)`, seen),

  'archive.status': (): Sql => statusIn(['archive']),
  'archive.unchanged': (version: Sql): Sql => sql`r.version = ${version}`,
  'archive.announced': (strays: Sql, name: Sql): Sql =>
    sql`exists (select 1 from ${strays} as s where s.name = ${name} and s.is_given_up = 0)`,
  'archive.name': (name: Sql): Sql => sql`r.log_ref = ${name}`,

  'command.tenant': (tenant: Sql): Sql => sql`(${tenant} is null or r.tenant = ${tenant})`,
  'cancel.status': (): Sql => statusIn(['cancel']),
  'requestCancel.status': (): Sql => statusIn(['requestCancel']),
  'retry.status': (): Sql => statusIn(['retry']),
  'park.status': (): Sql => statusIn(['parkPending']),
  'unpark.parked': (dialect: SqlDialect): Sql => isParked('unpark', dialect),
  'failParked.parked': (dialect: SqlDialect): Sql => isParked('failParked', dialect),
  'remove.status': (): Sql => statusIn(['remove']),

  /** Of rows of `leaders` (alias `l`), `schedules` (alias `s`), `inbox` (alias `m`) and of workers. */
  'lead.over': (dialect: SqlDialect): Sql => sql`l.lead_until <= ${dialect.now}`,
  /** Written so that no index on what waits is taken for it: each row is looked up by its id. */
  'deliver.round': (round: Sql): Sql => sql`case when m.processed_at is null then m.round end = ${round}`,
  /** Replay looks first and writes later. */
  'replay.round': (seen: Sql, dialect: SqlDialect): Sql => dialect.isAmong(sql`(m.id || '/' || m.round)`, seen),
  'release.lead': (isLeading: Sql): Sql => isLeading,
  'release.whole': (isWhole: Sql): Sql => isWhole,
  'deliver.lead': (isLeading: Sql): Sql => isLeading,
  'fire.lead': (isLeading: Sql): Sql => isLeading,
  'fire.version': (version: Sql): Sql => sql`s.version = ${version}`,
  'purge.leadOfSchedules': (isLeading: Sql): Sql => isLeading,
  'purge.leadOfInbox': (isLeading: Sql): Sql => isLeading,
  'forget.lead': (isLeading: Sql): Sql => isLeading,
  'forget.leadOfJobs': (isLeading: Sql): Sql => isLeading,

  /** Written so that no index on the status is taken for it: each row is looked up by its id. */
  'assign.status': (): Sql => statusIn(['assign'], BARE_STATUS),
  'assign.version': (version: Sql): Sql => sql`r.version = ${version}`,
  'assign.lead': (isLeading: Sql): Sql => isLeading,
  'assign.slot': (slotsTaken: Sql): Sql => sql`(r.concurrency_slot is not null or ${slotsTaken} < r.concurrency_limit)`,
  'start.status': (): Sql => statusIn(['start'], BARE_STATUS),
  'start.assignee': (workerId: Sql): Sql => sql`r.assigned_worker_id = ${workerId}`,
  'start.version': (version: Sql): Sql => sql`r.version = ${version}`,
  'decline.status': (): Sql => statusIn(['decline'], BARE_STATUS),
  'decline.assignee': (workerId: Sql): Sql => sql`r.assigned_worker_id = ${workerId}`,
  'decline.version': (version: Sql): Sql => sql`r.version = ${version}`,
  'orphan.status': (dialect: SqlDialect): Sql => statusIn(['orphan'], dialect.waitingStatus(sql`r.status`)),
  'orphan.overdue': (isOverdue: Sql): Sql => isOverdue,
  'orphan.lead': (isLeading: Sql): Sql => isLeading,
  'orphan.leaderless': (wasLed: Sql): Sql => sql`not ${wasLed}`,
  'free.status': (): Sql => statusIn(['free']),
  'free.leaderless': (wasLed: Sql): Sql => sql`not ${wasLed}`,

  'signal.tenant': (tenant: Sql): Sql => sql`(${tenant} is null or r.tenant = ${tenant})`,
  'signal.status': (): Sql => statusIn(['signal']),
} as const

export type Fences = typeof FENCES
export type FenceName = keyof Fences

/** The fence of a holder: epoch, token and leader epoch, and the number of the commit. */
export function holds(fences: Fences, dialect: SqlDialect, lease: LeaseTerms & { readonly commitNo?: Sql }): Sql {
  const terms = [
    sql`r.id = ${lease.runId}`,
    fences['lease.status'](),
    fences['lease.epoch'](lease),
    fences['lease.token'](lease),
    fences['lease.leaderEpoch'](lease, dialect),
    ...(lease.commitNo === undefined ? [] : [fences['lease.commitNo'](lease.commitNo)]),
  ]
  return sql.join(terms, sql` and `)
}

function statusIn(transitions: readonly TransitionName[], status: Sql = sql`r.status`): Sql {
  const from = transitions.flatMap((transition) => LIFECYCLE[transition].from as readonly RunStatus[])
  const statuses = [...new Set(from)]
  const [first] = statuses
  // `=` lets the planner use the partial indexes.
  if (statuses.length === 1 && first !== undefined) return sql`${status} = ${sql.lit(first)}`
  return sql`${status} in (${sql.join(statuses.map((status) => sql.lit(status)))})`
}

/** Parked is not a status of its own, so the guard asks for more than the status. */
function isParked(transition: TransitionName, dialect: SqlDialect): Sql {
  return sql`${statusIn([transition])} and ${dialect.property(sql`r.waiting_for`, 'kind')} = 'unpark'`
}
