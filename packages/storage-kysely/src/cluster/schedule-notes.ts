import type { AuditNote } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { compileQuery, type Sql, type SqlContext } from '../statement'
import { insertNote, noteValues } from '../write'

interface NotedChange {
  readonly audit: AuditNote | undefined
  /** Which schedule `s` it is about, as it is before. */
  readonly was: Sql
  /** Which it is afterwards. */
  readonly is: Sql
}

/** A change of a schedule with the note of it around it, if it has one. */
export function withScheduleNote(
  context: SqlContext,
  { audit, was, is }: NotedChange,
  change: CompiledQuery,
): readonly CompiledQuery[] {
  if (audit === undefined) return [change]
  const { dialect, tables } = context
  const before = noteOf(context, audit, { where: was, before: scheduleView(context), end: dialect.locked })
  const view = sql`(select ${scheduleView(context)} from ${tables.schedules} as s where ${is})`
  return [before, change, compileQuery(context, sql`update ${tables.audit} set after = ${view} where id = ${audit.id}`)]
}

/** What is noted when there was nothing before. */
export function newScheduleNote(context: SqlContext, audit: AuditNote, is: Sql): readonly CompiledQuery[] {
  return [noteOf(context, audit, { where: is, before: sql`null`, after: scheduleView(context) })]
}

/** Which runs of a schedule somebody has started, if any. */
export function startNote(
  context: SqlContext,
  audit: AuditNote,
  { scheduleId, runIds }: { readonly scheduleId: string; readonly runIds: readonly string[] },
): readonly CompiledQuery[] {
  const { dialect, tables } = context
  const ids = dialect.listOf(sql`${JSON.stringify(runIds)}`)
  const made = sql`from ${tables.runs} as r where ${dialect.isAmong(sql`r.id`, sql`select value from ${ids}`)}`
  const where = sql`s.id = ${scheduleId} and exists (select 1 ${made})`
  const list = dialect.nested(dialect.toJson(sql`(select ${dialect.arrayOf(sql`r.id`)} ${made})`))
  return [noteOf(context, audit, { where, before: sql`null`, after: dialect.record({ runs: list }) })]
}

interface Noted {
  readonly where: Sql
  readonly before: Sql
  readonly after?: Sql
  readonly end?: Sql
}

function noteOf(context: SqlContext, audit: AuditNote, { where, end = sql``, ...views }: Noted): CompiledQuery {
  const of = { tenant: sql`s.tenant`, target_kind: sql`'schedule'`, target: sql`s.name`, ...views }
  const from = sql`from ${context.tables.schedules} as s where ${where} ${end}`
  return compileQuery(context, insertNote(context, parameterOf(context, audit), { of, from }))
}

function parameterOf({ dialect }: SqlContext, audit: AuditNote) {
  const values = noteValues(audit)
  return (name: keyof typeof values): Sql => dialect.parameter(sql`${values[name]}`, 'text')
}

/** What is kept of the schedule `s`, as `auditViewOfSchedule` says. */
function scheduleView({ dialect }: SqlContext): Sql {
  return dialect.record({
    jobName: sql`s.job_name`,
    definition: dialect.nested(sql`s.definition`),
    overlap: sql`s.overlap`,
    pausedBecause: sql`s.paused_because`,
    version: sql`s.version`,
  })
}
