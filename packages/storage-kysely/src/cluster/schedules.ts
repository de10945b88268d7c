import type {
  AuditNote,
  DueSchedule,
  DueSchedules,
  Lead,
  NewSchedule,
  OpenRun,
  ScheduleChange,
  ScheduleKey,
  ScheduleQuery,
  ScheduleRecord,
  StartByHand,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { type Listing, msUntil, readListing, type Reader } from '../read'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import { createRunList } from './run-list'
import { newScheduleNote, startNote, withScheduleNote } from './schedule-notes'
import {
  and,
  assignments,
  compileQuery,
  list,
  namesOf,
  type Row,
  rowsOf,
  type Sql,
  type SqlContext,
  statement,
  type StatementTarget,
  toSchedule,
  valueOf,
  type WriteTarget,
} from '../statement'
import type { SqlType } from '../dialect'

export type Schedules = ReturnType<typeof createSchedules>

/** What is not done by time. */
export function createSchedules(context: SqlContext) {
  const { tables } = context
  const create = createStatement(context)
  const holdersOf = namedStatement(context)
  const remove = statement<'tenant' | 'name'>(
    context,
    (p) => sql`delete from ${tables.schedules} where tenant = ${p('tenant')} and name = ${p('name')} returning id`,
  )
  const byHand = createRunList<never>(
    context,
    (cause) => sql`exists (select 1 from ${tables.schedules} as s where s.id = ${cause})`,
  )
  return {
    async create(target: StatementTarget, schedules: readonly NewSchedule[], audit?: AuditNote) {
      const results = await target.write([
        create.bind({ schedules: JSON.stringify(schedules) }),
        ...(audit === undefined ? [] : newScheduleNote(context, audit, sql`s.id = ${schedules[0]?.id}`)),
        holdersOf.bind({ schedules: JSON.stringify(schedules) }),
      ])
      const rows = results.at(-1) ?? []
      const holders = new Map(rows.map((row) => [keyOf(toSchedule(row)), toSchedule(row)]))
      return schedules.map((wanted) => {
        const schedule = holders.get(keyOf(wanted)) as ScheduleRecord
        return { schedule, created: schedule.id === wanted.id }
      })
    },
    async change(target: WriteTarget, change: ScheduleChange): Promise<ScheduleRecord | null> {
      const { audit } = change
      const noted = { audit, was: asRead(context, change), is: named(context, change) }
      const results = await target.write(withScheduleNote(context, noted, changeOf(context, change)))
      const [row] = results[audit === undefined ? 0 : 1] ?? []
      return row === undefined ? null : toSchedule(row)
    },
    async remove(target: WriteTarget, key: ScheduleKey, audit?: AuditNote): Promise<boolean> {
      const { tenant, name } = key
      const noted = { audit, was: named(context, key), is: named(context, key) }
      const results = await target.write(withScheduleNote(context, noted, remove.bind({ tenant, name })))
      return (results[audit === undefined ? 0 : 1] ?? []).length > 0
    },
    async startByHand(target: WriteTarget, { scheduleId, runs, audit }: StartByHand): Promise<readonly string[]> {
      if (runs.length === 0) return []
      const caused = runs.map((run) => ({ run, cause: scheduleId }))
      const runIds = runs.map(({ id }) => id)
      const note = startNote(context, audit, { scheduleId, runIds })
      const [created = []] = await target.write([...byHand.bind(caused, {}), ...note])
      return created.map(({ id }) => String(id))
    },
    purge: createPurge(context),
    ...createReads(context),
  }
}

function createPurge(context: SqlContext) {
  const { tables, dialect, fences } = context
  const lock = createLeadLock(context)
  // Once an hour all of them are gone through, which costs less than an index on their ends. The oldest are among the first.
  const purge = statement<'olderThanMs' | 'limit' | LeadName>(context, (p) => {
    const before = dialect.nowPlus(sql`(- ${p('olderThanMs')})`)
    const over = sql`select id from ${tables.schedules} where ended_at <= ${before} and source is null
      order by id limit ${p('limit')}`
    const guard = and(dialect.isAmong(sql`id`, over), fences['purge.leadOfSchedules'](isLeading(context, p)))
    return sql`delete from ${tables.schedules} where ${guard} returning id`
  })
  return async (target: WriteTarget, lead: Lead, params: { readonly olderThanMs: number; readonly limit: number }) => {
    const results = await target.write([...lock(lead), purge.bind({ ...leadValues(lead), ...params })])
    return results.at(-1)?.length ?? 0
  }
}

function createStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'schedules'>(context, (p) => {
    const value = valueOf(context, 't')
    const columns = {
      id: value('id'),
      tenant: value('tenant'),
      name: value('name'),
      source: value('source'),
      job_name: value('jobName'),
      payload: value('payload'),
      definition: value('definition'),
      overlap: value('overlap'),
      fired_until: dialect.now,
      due_at: dialect.now,
      created_at: dialect.now,
      updated_at: dialect.now,
    }
    const names = ['id', 'tenant', 'name', 'source', 'jobName', 'payload', 'definition', 'overlap'] as const
    return sql`insert into ${tables.schedules} (${namesOf(columns)}) select ${list(...Object.values(columns))}
      from ${rowsOf(context, p('schedules'), names)} where true on conflict do nothing`
  })
}

/** Those that have the names of a list. */
function namedStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'schedules'>(context, (p) => {
    const wanted = rowsOf(context, p('schedules'), ['tenant', 'name'])
    return sql`select ${dialect.columns('schedules', 's')} from ${wanted}
      join ${tables.schedules} as s on s.tenant = t.tenant and s.name = t.name`
  })
}

function named({ dialect }: SqlContext, { tenant, name }: ScheduleKey): Sql {
  const value = (given: string) => dialect.parameter(sql`${given}`, 'text')
  return and(sql`tenant = ${value(tenant)}`, sql`name = ${value(name)}`)
}

/** By its name, in the version that was read. */
function asRead(context: SqlContext, change: Pick<ScheduleChange, 'tenant' | 'name' | 'version'>): Sql {
  const { version } = change
  if (version === undefined) return named(context, change)
  return and(named(context, change), sql`version = ${context.dialect.parameter(sql`${version}`, 'integer')}`)
}

function changeOf(context: SqlContext, { content, ...change }: ScheduleChange) {
  const { tables, dialect } = context
  const value = (given: string | number | null, type: SqlType = 'text') => dialect.parameter(sql`${given}`, type)
  const { source, pausedBecause, isAnew } = change
  const isPaused = pausedBecause === undefined ? sql`paused_because is not null` : pausedBecause === null ? NO : YES
  const sets = {
    ...(content !== undefined && {
      job_name: value(content.jobName),
      payload: value(content.payload, 'json'),
      definition: value(content.definition, 'json'),
      overlap: value(content.overlap),
    }),
    ...(source !== undefined && { source: value(source) }),
    ...(pausedBecause !== undefined && { paused_because: value(pausedBecause) }),
    ...(isAnew && { fired_until: dialect.now, next_at: sql`null`, ended_at: sql`null` }),
    due_at: sql`case when ${isPaused} then null else ${isAnew ? dialect.now : sql`due_at`} end`,
    version: sql`version + 1`,
    updated_at: dialect.now,
  }
  return compileQuery(
    context,
    sql`update ${tables.schedules} set ${assignments(sets)} where ${asRead(context, change)} returning ${dialect.columns('schedules')}`,
  )
}

const YES = sql`1 = 1`
const NO = sql`1 = 0`

function createReads(context: SqlContext) {
  const { tables, dialect } = context
  const now = dialect.read(dialect.now, 'instant')
  const withOpenRuns = sql`${dialect.columns('schedules', 's')}, ${openRunsOf(context)} as open_runs`
  const get = statement<'tenant' | 'name'>(
    context,
    (p) =>
      sql`select ${withOpenRuns} from ${tables.schedules} as s where s.tenant = ${p('tenant')} and s.name = ${p('name')}`,
  )
  const look = statement<never>(context, () => {
    const first = (condition: Sql) =>
      sql`(select ${dialect.read(sql`min(s.due_at)`, 'instant')} from ${tables.schedules} as s where ${condition})`
    return sql`select ${now} as now, ${first(sql`s.due_at <= ${dialect.now}`)} as due_at,
      ${first(sql`s.due_at > ${dialect.now}`)} as next_at`
  })
  const due = statement<'limit'>(
    context,
    (p) => sql`select ${withOpenRuns}, ${now} as now from ${tables.schedules} as s where s.due_at <= ${dialect.now}
      order by s.due_at, s.id limit ${p('limit')}`,
  )
  return {
    async get(reader: Reader, { tenant, name }: ScheduleKey): Promise<DueSchedule | null> {
      const [row] = await reader.read(get.bind({ tenant, name }))
      return row === undefined ? null : toDue(row)
    },
    async list(reader: Reader, query: ScheduleQuery): Promise<readonly ScheduleRecord[]> {
      const { limit, after } = query
      const page = { limit, after: after === undefined ? undefined : ([after.tenant, after.name] as const) }
      return (await readListing({ context, reader, listing: listingOf(context, query) }, page)).map(toSchedule)
    },
    /** While nothing is due it is one look at an index. */
    async due(reader: Reader, limit: number): Promise<DueSchedules> {
      const [seen = {}] = await reader.read(look.bind({}))
      const rows = seen['due_at'] === null ? [] : await reader.read(due.bind({ limit }))
      return {
        now: String(rows[0]?.['now'] ?? seen['now']),
        schedules: rows.map(toDue),
        nextInMs: msUntil(seen['next_at'], seen['now']),
      }
    },
  }
}

function listingOf({ dialect }: SqlContext, { tenant, source, jobName, ...query }: ScheduleQuery): Listing {
  const value = (given: string) => dialect.parameter(sql`${given}`, 'text')
  return {
    ...{ table: 'schedules', index: 'schedules_name' },
    place: [
      { name: 'tenant', type: 'text' },
      { name: 'name', type: 'text' },
    ],
    within: tenant === undefined ? [] : [sql`tenant = ${value(tenant)}`],
    hasOneFirst: tenant !== undefined && (query.after === undefined || query.after.tenant === tenant),
    conditions: [
      ...(source === undefined ? [] : [sql`source = ${value(source)}`]),
      ...(jobName === undefined ? [] : [sql`job_name = ${value(jobName)}`]),
      ...Object.entries(query.labels ?? {}).map(
        ([label, text]) =>
          sql`${dialect.propertyAt(sql`definition`, ['run', 'labels'], value(label))} = ${value(text)}`,
      ),
      ...(query.isPaused === undefined ? [] : [sql`paused_because ${isThere(query.isPaused)}`]),
      ...(query.isEnded === undefined ? [] : [sql`ended_at ${isThere(query.isEnded)}`]),
    ],
  }
}

function isThere(isIt: boolean): Sql {
  return isIt ? sql`is not null` : sql`is null`
}

/** Each as its id and its instant. */
function openRunsOf({ tables, dialect }: SqlContext): Sql {
  const run = sql`r.id || ' ' || coalesce(${dialect.read(sql`r.scheduled_for`, 'instant')}, '')`
  return sql`case when s.overlap = 'allow' then null else (select ${dialect.arrayOf(run)} from ${tables.runs} as r
    where r.schedule_id = s.id and r.schedule_id is not null and r.finished_at is null) end`
}

function toDue(row: Row): DueSchedule {
  const open = JSON.parse((row['open_runs'] as string | null) ?? '[]') as readonly string[]
  return { schedule: toSchedule(row), openRuns: open.map(toOpenRun) }
}

function toOpenRun(text: string): OpenRun {
  const [id = '', scheduledFor = ''] = text.split(' ')
  return { id, scheduledFor: scheduledFor === '' ? null : scheduledFor }
}

function keyOf({ tenant, name }: ScheduleKey): string {
  return JSON.stringify([tenant, name])
}
