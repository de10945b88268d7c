import type { Lease, RenewAnswer } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Executor } from '../connection'
import { holds, type Sql, type SqlContext, statement } from '../statement'
import { lockedRuns } from './row-locks'

export type Renew = (executor: Executor, leases: readonly Lease[], leaseMs: number) => Promise<readonly RenewAnswer[]>

/**
 * All leases of a worker in one statement. One that ran out but was not recovered is renewed. On Postgres a run that
 * somebody holds locked does not keep the others waiting: it is looked at, and renewed the next time.
 */
export function createRenew(context: SqlContext): Renew {
  const { dialect } = context
  const extend = extendStatement(context)
  const look = lookStatement(context)

  return async function renew(executor, leases, leaseMs) {
    if (leases.length === 0) return []
    const terms = JSON.stringify(
      leases.map(({ runId, epoch, token, leaderEpoch }) => [runId, epoch, token, leaderEpoch]),
    )
    const [extended = []] = await executor.write([extend.bind({ leases: terms, leaseMs })])
    const hasMissed = !dialect.hasOneWriter && extended.length < leases.length
    const locked = hasMissed ? await executor.read(look.bind({ leases: terms })) : []
    // One worker can hold two leases of a run, an old one and a new one, of which only the new one is renewed.
    const held = new Map(
      [...locked, ...extended].map((row) => [nameOf([row['id'], row['lease_epoch'], row['claim_token']]), row]),
    )
    return leases.map(({ runId, epoch, token }) => {
      const row = held.get(nameOf([runId, epoch, token]))
      if (row === undefined) return { kept: false }
      return { kept: true, wakes: row['wakes'] as number, cancelRequested: row['cancel_requested_at'] !== null }
    })
  }
}

function extendStatement(context: SqlContext) {
  const { tables, dialect } = context
  const id = dialect.field(sql`lease.value`, 0, 'text')
  return statement<'leases' | 'leaseMs'>(context, (p) => {
    const leases = leasesIn(context, p('leases'))
    const lock = sql`with ${lockedRuns(context, sql`select ${id} as id from ${leases}`, { waiting: 'never' })}`
    const locked = sql`join (select id as locked_id from locked) as l on l.locked_id = ${id}`
    return sql`${dialect.hasOneWriter ? sql`` : lock} update ${tables.runs} as r set lease_until = ${dialect.nowPlus(p('leaseMs'))},
        heartbeat_at = ${dialect.now}, updated_at = ${dialect.now}, version = r.version + 1
      from ${leases} ${dialect.hasOneWriter ? sql`` : locked} where ${guardOf(context)} returning ${ANSWER}`
  })
}

function lookStatement(context: SqlContext) {
  return statement<'leases'>(
    context,
    (p) => sql`select ${ANSWER} from ${leasesIn(context, p('leases'))} join ${context.tables.runs} as r
      on ${guardOf(context)}`,
  )
}

const ANSWER = sql`id, lease_epoch, claim_token, wakes, cancel_requested_at`

function leasesIn({ dialect }: SqlContext, leases: Sql): Sql {
  return sql`${dialect.rowsOf(leases)} as lease`
}

function guardOf({ dialect, fences }: SqlContext): Sql {
  const field = (index: number, type: 'text' | 'integer') => dialect.field(sql`lease.value`, index, type)
  const terms = [field(0, 'text'), field(1, 'integer'), field(2, 'text'), field(3, 'integer')] as const
  const [runId, epoch, token, leaderEpoch] = terms
  return holds(fences, dialect, { runId, epoch, token, leaderEpoch })
}

function nameOf(lease: readonly unknown[]): string {
  return JSON.stringify(lease)
}
