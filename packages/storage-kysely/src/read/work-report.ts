import { sql } from 'kysely'
import { compileQuery, runsBy, type SqlContext } from '../statement'
import type { Reader } from './reader'

/** What is to be done and who does it, at one moment by the clock of the database. */
export interface WorkReport {
  readonly at: string
  /** Of the runs that may start, the one that was triggered first. */
  readonly oldestDue: { readonly id: string; readonly jobName: string; readonly dueSince: string } | null
  /** Who holds runs. A worker that has none is not known to the database. */
  readonly holders: readonly Holder[]
}

/** A worker, as the runs say that it holds. */
export interface Holder {
  readonly workerId: string
  readonly runs: number
  readonly heardAt: string
  /** Of its leases, the one that ends first. */
  readonly leaseUntil: string
}

export async function reportWork(context: SqlContext, reader: Reader): Promise<WorkReport> {
  const [oldest] = await reader.read(compileQuery(context, oldestDueQuery(context)))
  const rows = await reader.read(compileQuery(context, holdersQuery(context)))
  const text = (value: unknown) => String(value)
  const holders = rows.map((row) => ({
    workerId: text(row['owner_id']),
    runs: Number(row['runs']),
    heardAt: text(row['heard_at']),
    leaseUntil: text(row['lease_until']),
  }))
  const { now, id, job_name, due_since } = oldest ?? {}
  return {
    at: text(now),
    oldestDue: typeof id === 'string' ? { id, jobName: text(job_name), dueSince: text(due_since) } : null,
    holders,
  }
}

/** Always one row: it tells the time as well. */
function oldestDueQuery(context: SqlContext) {
  const { dialect, tables } = context
  const due = sql`(select r.id from ${tables.runs} as r
    where r.status = 'pending' and r.available_at <= ${dialect.now} order by r.created_at limit 1)`
  return sql`select ${dialect.read(dialect.now, 'instant')} as now, found.id, found.job_name,
      ${dialect.read(sql`found.available_at`, 'instant')} as due_since
    from (select 1 as one) as moment left join ${tables.runs} as found on found.id = ${due}`
}

function holdersQuery(context: SqlContext) {
  const { dialect } = context
  return sql`select r.owner_id, count(*) as runs, ${dialect.read(sql`max(r.heartbeat_at)`, 'instant')} as heard_at,
      ${dialect.read(sql`min(r.lease_until)`, 'instant')} as lease_until
    from ${runsBy(context, 'running')} where r.status = 'running' group by r.owner_id order by r.owner_id`
}
