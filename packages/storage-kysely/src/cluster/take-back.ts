import type { OrphanParams, RunRecord } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Executor } from '../connection'
import { bindEvents, createWriteLocked, eventStatement } from '../write'
import { orphaned } from './assigned'
import { createLeadLock, isLeading, type LeadName, leadValues, wasLed } from './leads'
import { and, runColumns, type Sql, type SqlContext, statement, toRun, type WriteTarget } from '../statement'

type AgeName = 'reassignAfterMs' | 'livingAfterMs'
type SeenName = 'runIds' | AgeName | LeadName | 'isLeaderless'
type Parameter<TName extends string> = (name: TName) => Sql

const NOBODY = { leadName: '', leaderId: '', epoch: 0 } as const

/** Brings back runs that were assigned to somebody who does not start them. */
export function createTakeBack(context: SqlContext) {
  const { tables, dialect, fences } = context
  const lock = createLeadLock(context)
  const writeLocked = createWriteLocked(context)
  const guard = (p: Parameter<SeenName>) => {
    const byLeader = fences['orphan.lead'](isLeading(context, p))
    const byAnybody = fences['orphan.leaderless'](wasLed(context))
    return and(
      sql`r.id in (select value from ${dialect.listOf(p('runIds'))})`,
      fences['orphan.status'](dialect),
      fences['orphan.overdue'](isOverdue(context, p)),
      sql`case when ${p('isLeaderless')} = 1 then ${byAnybody} else ${byLeader} end`,
    )
  }
  const find = statement<AgeName | 'limit'>(
    context,
    (p) => sql`select r.id from ${tables.runs} as r where ${fences['orphan.status'](dialect)}
      and ${fences['orphan.overdue'](isOverdue(context, p))} order by r.assigned_at, r.id limit ${p('limit')}`,
  )
  const event = eventStatement<SeenName>(context, guard)
  const orphan = statement<SeenName | 'eventCount'>(
    context,
    (p) => sql`update ${tables.runs} as r set ${orphaned(context, p('eventCount'))}
      where ${guard(p)} returning ${runColumns(context)}`,
  )
  const free = statement<'limit'>(
    context,
    (p) => sql`update ${tables.runs} as r set status = 'pending', version = r.version + 1, updated_at = ${dialect.now}
      where r.id in (select r.id from ${tables.runs} as r
          where ${fences['free.status']()} order by r.priority desc, r.available_at, r.id limit ${p('limit')})
        and ${fences['free.status']()} and ${fences['free.leaderless'](wasLed(context))} returning id`,
  )
  return {
    /** Looks first: most of the time there is nothing. */
    async orphan(executor: Executor, params: OrphanParams): Promise<readonly RunRecord[]> {
      const { lead, reassignAfterMs, livingAfterMs, limit, events } = params
      const ages = { reassignAfterMs, livingAfterMs }
      const runIds = (await executor.read(find.bind({ ...ages, limit }))).map(({ id }) => String(id))
      if (runIds.length === 0) return []
      const by = lead === null ? { ...NOBODY, isLeaderless: 1 } : { ...leadValues(lead), isLeaderless: 0 }
      const values = { ...ages, ...by, runIds: JSON.stringify(runIds) }
      const results = await writeLocked(executor, { runIds }, [
        ...(lead === null ? [] : lock(lead)),
        ...bindEvents({ statement: event, events, after: 0, values }),
        orphan.bind({ ...values, eventCount: events.length }),
      ])
      return (results.at(-1) ?? []).map(toRun)
    },
    async free(target: WriteTarget, limit: number): Promise<readonly string[]> {
      const [rows = []] = await target.write([free.bind({ limit })])
      return rows.map(({ id }) => String(id))
    },
  }
}

function isOverdue({ tables, dialect }: SqlContext, p: Parameter<AgeName>): Sql {
  const before = (name: AgeName) => sql`r.assigned_at <= ${dialect.nowPlus(sql`(- ${p(name)})`)}`
  const lives = sql`exists (select 1 from ${tables.workers} as w where w.worker_id = r.assigned_worker_id
    and w.presence <> 'detached' and w.alive_until > ${dialect.now})`
  return sql`(${before('livingAfterMs')} or (${before('reassignAfterMs')} and not ${lives}))`
}
