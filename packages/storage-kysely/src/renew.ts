import type { Lease, RenewAnswer } from '@coji/durably-core'
import { sql } from 'kysely'
import type { Executor } from './executor'
import { holds } from './fences'
import { lockedRuns } from './row-locks'
import { type SqlContext, statement } from './statement'

export type Renew = (executor: Executor, leases: readonly Lease[], leaseMs: number) => Promise<readonly RenewAnswer[]>

/** All leases of a worker in one statement. One that ran out but was not recovered is renewed. */
export function createRenew(context: SqlContext): Renew {
  const { tables, dialect, fences } = context
  const field = (index: number, type: 'text' | 'integer') => dialect.field(sql`lease.value`, index, type)
  const extend = statement<'leases' | 'leaseMs'>(context, (p) => {
    const guard = holds(fences, dialect, {
      runId: field(0, 'text'),
      epoch: field(1, 'integer'),
      token: field(2, 'text'),
      leaderEpoch: field(3, 'integer'),
    })
    const leases = sql`${dialect.rowsOf(p('leases'))} as lease`
    const isPostgres = dialect.name === 'postgres'
    const lock = sql`with ${lockedRuns(context, sql`select ${field(0, 'text')} as id from ${leases}`)}`
    return sql`${isPostgres ? lock : sql``} update ${tables.runs} as r set lease_until = ${dialect.nowPlus(p('leaseMs'))},
        heartbeat_at = ${dialect.now}, updated_at = ${dialect.now}, version = r.version + 1
      from ${leases} ${isPostgres ? sql`join (select id as locked_id from locked) as l on l.locked_id = ${field(0, 'text')}` : sql``} where ${guard}
      returning id, lease_epoch, claim_token, wakes, cancel_requested_at`
  })

  return async function renew(executor, leases, leaseMs) {
    if (leases.length === 0) return []
    const terms = leases.map(({ runId, epoch, token, leaderEpoch }) => [runId, epoch, token, leaderEpoch])
    const [rows = []] = await executor.write([extend.bind({ leases: JSON.stringify(terms), leaseMs })])
    // One worker can hold two leases of a run, an old one and a new one, of which only the new one is renewed.
    const renewed = new Map(rows.map((row) => [nameOf([row['id'], row['lease_epoch'], row['claim_token']]), row]))
    return leases.map(({ runId, epoch, token }) => {
      const row = renewed.get(nameOf([runId, epoch, token]))
      if (row === undefined) return { kept: false }
      return { kept: true, wakes: row['wakes'] as number, cancelRequested: row['cancel_requested_at'] !== null }
    })
  }
}

function nameOf(lease: readonly unknown[]): string {
  return JSON.stringify(lease)
}
