import type { PurgeParams, RunStatus } from '@coji/durably-core/storage'
import { ENDED_STATUSES } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { straysOf } from './archiving'
import { insertNote, type NoteName, noteValues } from './audit'
import { type Ended, endedOf, isUnneeded, oldestEnds } from './ends'
import { createWriteLocked } from './row-locks'
import {
  compileQuery,
  type ParameterName,
  type Row,
  runColumns,
  type Sql,
  type SqlContext,
  type Statement,
  statement,
  type StatementTarget,
} from '../statement'

type Parameter<TName extends ParameterName> = (name: TName) => Sql

/** Deletes runs with all that belongs to them; the run last, because the guard looks at it. */
export function removeStatements<TName extends ParameterName>(
  context: SqlContext,
  guard: (p: Parameter<TName>) => Sql,
  /** What is told of each run. */
  told: Sql = runColumns(context),
): readonly Statement<TName>[] {
  const { tables } = context
  // Of an empty table nothing has to be looked for: a queue of plain tasks has four of them.
  const isOf = (table: Sql, p: Parameter<TName>) => sql`exists (select 1 from ${table})
    and run_id in (select r.id from ${tables.runs} as r where ${guard(p)})`
  const related = [tables.steps, tables.logs, tables.run_events, tables.signals, tables.debounced_runs]
  return [
    statement<TName>(
      context,
      (p) => sql`delete from ${tables.run_labels} where ${isOf(tables.run_labels, p)} returning name, value`,
    ),
    statement<TName>(context, (p) => straysOf(context, guard(p))),
    ...related.map((table) => statement<TName>(context, (p) => sql`delete from ${table} where ${isOf(table, p)}`)),
    statement<TName>(context, (p) => sql`delete from ${tables.runs} as r where ${guard(p)} returning ${told}`),
  ]
}

/** So many events and steps, with the logs that come with them, go in one write: each some microseconds. */
const MOST_ROWS = 5000

/** The first of them, at least one: beside a driver that answers within the call nothing else is done meanwhile. */
function fewEnough(found: readonly Row[]): readonly Row[] {
  let rows = 0
  const isTooMuch = (row: Row) => {
    rows += Number(row['weight'])
    return rows > MOST_ROWS
  }
  const end = found.findIndex(isTooMuch)
  return end === -1 ? found : found.slice(0, Math.max(1, end))
}

export type Purge = (target: StatementTarget, params: PurgeParams) => Promise<number>

/** Looks for the oldest first, then removes those that are still as they were seen. */
export function createPurge(context: SqlContext): Purge {
  const { dialect, fences } = context
  const writeLocked = createWriteLocked(context)
  const seen = (p: Parameter<'runs'>) => dialect.rowsOf(p('runs'))
  const seenId = dialect.field(sql`seen.value`, 0, 'text')
  const seenVersion = dialect.field(sql`seen.value`, 1, 'integer')
  // Both lists are gone through once, not once for each run.
  const guard = (p: Parameter<'runs'>): Sql =>
    sql`${dialect.isAmong(sql`r.id`, sql`select ${seenId} from ${seen(p)} as seen`)}
      and ${fences['remove.status']()} and ${isUnneeded(context)}
      and ${fences['purge.unchanged'](sql`select ${seenId} || '/' || ${seenVersion} from ${seen(p)} as seen`, dialect)}`
  const remove = removeStatements<'runs'>(context, guard, sql`id`)
  const noted = statement<'runs' | 'tenant' | NoteName>(context, (p) => {
    const list = dialect.nested(dialect.toJson(dialect.arrayOf(sql`r.id`)))
    const of = {
      ...{ tenant: p('tenant'), target_kind: sql`'runs'`, target: sql`''` },
      before: dialect.record({ runs: list }),
    }
    const from = sql`from ${context.tables.runs} as r where ${guard(p)} having count(*) > 0`
    return insertNote(context, p, { of, from })
  })

  return async function purge(target, params) {
    const statuses = params.statuses.filter((status) => (ENDED_STATUSES as readonly RunStatus[]).includes(status))
    if (statuses.length === 0 || params.jobNames?.length === 0 || params.limit <= 0) return 0
    const found = fewEnough(await findUnneeded(target, params, statuses))
    if (found.length === 0) return 0
    const runs = JSON.stringify(found.map((row) => [row['id'], row['version']]))
    const runIds = found.map((row) => String(row['id']))
    const list = remove.map((one) => one.bind({ runs }))
    const note =
      params.audit === undefined ? [] : [noted.bind({ ...noteValues(params.audit), runs, tenant: params.tenant ?? '' })]
    const results = await writeLocked(target, { runIds }, [...note, ...list])
    return results.at(-1)?.length ?? 0
  }

  /** Passes over those that somebody waits for, however many they are. */
  async function findUnneeded(target: StatementTarget, params: PurgeParams, statuses: readonly RunStatus[]) {
    for (let last: Ended | undefined; ; ) {
      const page = await target.read(compileQuery(context, oldestEnds(context, { ...params, statuses, last })))
      const found = page.filter((row) => Boolean(row['is_unneeded']))
      if (found.length > 0 || page.length < params.limit) return found
      last = page.map(endedOf).at(-1)
    }
  }
}
