import type { Delivery, DeliveryAnswer, InboxStorage, Lead, Release, RipeGroup } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import { msUntil, type Reader } from '../read'
import { and, type Row, rowsOf, type Sql, type SqlContext, statement, valueOf, type WriteTarget } from '../statement'
import { createRunList } from './run-list'
import { toSubscription } from './subscription'

/** Keeps messages for jobs that gather them: those that this very delivery has marked. */
export function gatherStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'gathered' | 'deliverToken'>(context, (p) => {
    const value = valueOf(context, 't')
    return sql`insert into ${tables.gathered} (id, job_name, tenant, key, mode, max, payload, due_at, created_at, place)
      select ${value('id')}, ${value('jobName')}, m.tenant, ${value('key')}, ${value('mode')}, ${value('max')}, m.payload,
        ${dialect.nowPlus(value('waitMs'))}, ${dialect.now}, t.n
      from ${rowsOf(context, p('gathered'), ['id', 'messageId', 'jobName', 'key', 'mode', 'max', 'waitMs'])}
      join ${tables.inbox} as m on m.id = t."messageId" and m.deliver_token = ${p('deliverToken')}
      where true on conflict do nothing`
  })
}

export function gatheredRows(deliveries: readonly Delivery[]) {
  const rows = deliveries.flatMap(({ messageId, round, gathered }) =>
    gathered.map((each) => ({ ...each, messageId, id: `${messageId} ${round} ${each.jobName}` })),
  )
  return rows.map((row, n) => ({ n, ...row }))
}

export function createGathered(context: SqlContext) {
  return { ripe: createRipe(context), release: createRelease(context) }
}

type Ripe = Awaited<ReturnType<InboxStorage['ripe']>>

function createRipe(context: SqlContext) {
  const { tables, dialect } = context
  const groups = sql`select g.job_name, g.tenant, g.key, min(g.mode) as mode, min(g.max) as max, count(*) as members,
    case when min(g.mode) = 'all' then min(g.due_at) else max(g.due_at) end as due_at
    from ${tables.gathered} as g group by g.job_name, g.tenant, g.key`
  const isRipe = sql`(r.due_at <= ${dialect.now} or (r.mode = 'all' and r.members >= r.max))`
  const look = statement<never>(context, () => {
    const next = sql`min(case when ${isRipe} then null else r.due_at end)`
    return sql`select ${dialect.read(dialect.now, 'instant')} as now, ${dialect.read(next, 'instant')} as next_at,
      coalesce(sum(case when ${isRipe} then 1 else 0 end), 0) as ripe from (${groups}) as r`
  })
  const members = statement<'limit'>(
    context,
    (p) => sql`select ${dialect.columns('gathered', 'g')} from ${tables.gathered} as g
      join (select * from (${groups}) as r where ${isRipe} order by r.due_at limit ${p('limit')}) as r
        on r.job_name = g.job_name and r.tenant = g.tenant and r.key = g.key
      order by g.created_at, g.place, g.id`,
  )
  const wishes = statement<'jobs'>(
    context,
    (p) => sql`select ${dialect.columns('subscriptions', 'w')} from ${tables.subscriptions} as w
      where w.job_name in (select value from ${dialect.listOf(p('jobs'))}) order by w.job_name, w.type`,
  )
  return async function ripe(reader: Reader, limit: number): Promise<Ripe> {
    const [seen = {}] = await reader.read(look.bind({}))
    const rows = Number(seen['ripe']) === 0 ? [] : await reader.read(members.bind({ limit }))
    const jobs = JSON.stringify([...new Set(rows.map((row) => row['job_name']))])
    const wanted = rows.length === 0 ? [] : await reader.read(wishes.bind({ jobs }))
    return {
      groups: groupsOf(rows),
      subscriptions: wanted.map(toSubscription),
      nextInMs: msUntil(seen['next_at'], seen['now']),
    }
  }
}

function groupsOf(rows: readonly Row[]): readonly RipeGroup[] {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const name = JSON.stringify([row['job_name'], row['tenant'], row['key']])
    const group = groups.get(name) ?? []
    groups.set(name, group)
    if (row['mode'] === 'last' || group.length < Number(row['max'])) group.push(row)
  }
  return [...groups.values()].map(toGroup)
}

function toGroup(rows: readonly Row[]): RipeGroup {
  const [first = {}] = rows
  const text = (name: string) => String(first[name])
  return {
    jobName: text('job_name'),
    tenant: text('tenant'),
    key: text('key'),
    mode: text('mode') as RipeGroup['mode'],
    members: rows.map((row) => ({ id: String(row['id']), payload: row['payload'] as string | null })),
  }
}

function createRelease(context: SqlContext) {
  const { tables, dialect, fences } = context
  const lock = createLeadLock(context)
  const mark = statement<'ids' | 'releaseToken' | LeadName>(context, (p) => {
    const guard = and(
      sql`id in (select value from ${dialect.listOf(p('ids'))})`,
      fences['release.lead'](isLeading(context, p)),
    )
    return sql`update ${tables.gathered} set release_token = ${p('releaseToken')} where ${guard} returning id`
  })
  const value = valueOf(context, 't')
  const members = (p: (name: 'gathered') => Sql) => rowsOf(context, p('gathered'), ['id', 'cause', 'wanted'])
  /** Whoever waited for another one to mark a member finds it gone: what was marked is counted afterwards. */
  const isWhole = (cause: Sql, p: (name: 'gathered' | 'releaseToken') => Sql) =>
    fences['release.whole'](sql`${cause} in (select ${value('cause')} from ${members(p)}
      join ${tables.gathered} as g on g.id = ${value('id')} and g.release_token = ${p('releaseToken')}
      group by ${value('cause')} having count(*) = min(${value('wanted')}))`)
  const runs = createRunList<'gathered' | 'releaseToken'>(context, isWhole)
  const forget = statement<'gathered' | 'releaseToken'>(
    context,
    (p) => sql`delete from ${tables.gathered} where release_token = ${p('releaseToken')}
      and id in (select ${value('id')} from ${members(p)} where ${isWhole(value('cause'), p)})`,
  )

  return async function release(
    target: WriteTarget,
    lead: Lead,
    releases: readonly Release[],
  ): Promise<DeliveryAnswer[]> {
    const releaseToken = crypto.randomUUID()
    const locks = lock(lead)
    const caused = releases.flatMap(({ run, members }) => (run === null ? [] : [{ run, cause: members[0] ?? '' }]))
    const ids = JSON.stringify(releases.flatMap((each) => each.members))
    const gathered = JSON.stringify(membersOf(releases))
    const results = await target.write([
      ...locks,
      mark.bind({ ...leadValues(lead), ids, releaseToken }),
      ...runs.bind(caused, { gathered, releaseToken }),
      forget.bind({ gathered, releaseToken }),
    ])
    const [marked = [], inserted = []] = results.slice(locks.length)
    const created = caused.length === 0 ? [] : inserted
    const [markedIds, createdIds] = [marked, created].map((rows) => new Set(rows.map(({ id }) => id)))
    return releases.map(({ members, run }) => ({
      kept: members.every((id) => markedIds?.has(id)),
      created: run !== null && createdIds?.has(run.id) === true ? [run.id] : [],
    }))
  }
}

function membersOf(releases: readonly Release[]) {
  const rows = releases.flatMap(({ members }) =>
    members.map((id) => ({ id, cause: members[0] ?? '', wanted: members.length })),
  )
  return rows.map((row, n) => ({ n, ...row }))
}
