import { type NewRun, type RunRecord, StorageError } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { freshRun, newRunColumns, newRunValues } from './new-run'
import { patience, type PatienceName } from './row-locks'
import {
  list,
  type ListedRow,
  namesOf,
  rowsOf,
  type Sql,
  type SqlContext,
  type Statement,
  statement,
  valueOf,
  type WriteTarget,
} from '../statement'

/** Creates what is not there yet; `null` where a run has the id or the key. */
type GroupEnqueue = (target: WriteTarget, runs: readonly NewRun[]) => Promise<readonly (RunRecord | null)[]>

const LABEL_VALUES = ['id', 'labelName', 'labelValue'] as const
const EVENT_VALUES = ['id', 'seq', 'type', 'payload'] as const

/** For Postgres: any number of runs, with their labels and events, in one statement. */
export function createGroupEnqueue(context: SqlContext): GroupEnqueue {
  const create = createGroup(context)

  return async function groupEnqueue(target, runs) {
    const [rows = []] = await target.write([create(runs, target)])
    const created = new Map(rows.map((row) => [row['id'], row]))
    return runs.map((run) => {
      const row = created.get(run.id)
      return row === undefined ? null : freshRun(run, row)
    })
  }
}

/** What creates a list of runs; without the parts that none of them has, which is cheaper for most. */
export function createGroup(context: SqlContext): (runs: readonly NewRun[], target: WriteTarget) => CompiledQuery {
  const statements = new Map<string, Statement<GroupName | PatienceName>>()
  return (runs, { lockMs }) => {
    const values = groupValues(runs)
    const parts = PARTS.filter((part) => values[part] !== NONE)
    const key = parts.join()
    const create = statements.get(key) ?? groupStatement(context, parts)
    statements.set(key, create)
    return create.bind({ ...values, ...patience(lockMs) })
  }
}

function groupStatement(context: SqlContext, parts: readonly Part[]) {
  return statement<GroupName | PatienceName>(context, (p) => {
    // Told before the first row is written: somebody else may be taking a key of the list.
    const isTold = sql`(select case when ${p('patience')} = '' then ''
      else set_config('lock_timeout', ${p('patience')}, true) end) is not null`
    const created = createdRuns(context, p, { condition: isTold, parts })
    const { read } = context.dialect
    // What else there is of them is known: fifty columns of a row take both sides longer than the row.
    return sql`with ${created} select c.id, c.version, ${read(sql`c.available_at`, 'instant')} as available_at,
      ${read(sql`c.created_at`, 'instant')} as created_at from created as c`
  })
}

const PARTS = ['labels', 'events'] as const
type Part = (typeof PARTS)[number]

/** The JSON of an empty list. */
const NONE = '[]'

export type GroupName = 'runs' | Part

/** All runs of a list go as one value, of which Postgres takes a gigabyte and JavaScript half of that. */
const MOST_CHARACTERS = 2 ** 28

function refuseHugeList(runs: readonly NewRun[]): void {
  const length = runs.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0)
  if (length <= MOST_CHARACTERS) return
  const inMega = (characters: number) => Math.round(characters / 2 ** 20)
  throw new StorageError(
    'STORAGE_REJECTED',
    `The payloads of ${runs.length} runs are ${inMega(length)} million characters together, and one list takes ` +
      `${inMega(MOST_CHARACTERS)}. Nothing was sent. Trigger them in several batches, or store the data elsewhere.`,
  )
}

export function groupValues(runs: readonly NewRun[]): Record<GroupName, string> {
  refuseHugeList(runs)
  const labels = runs.flatMap(({ id, labels: own }) =>
    Object.entries(own).map(([labelName, labelValue]): ListedRow => ({ id, labelName, labelValue })),
  )
  const events = runs.flatMap((run) =>
    run.events.map(({ type, payload }, index): ListedRow => ({ id: run.id, seq: index + 1, type, payload })),
  )
  return {
    runs: JSON.stringify(runs.map((run, n) => ({ n, ...newRunValues(run) }))),
    labels: JSON.stringify(labels),
    events: JSON.stringify(events),
  }
}

interface CreatedParams {
  readonly condition: Sql
  readonly parts?: readonly Part[]
}

/** `created`: the runs that were not there yet, if the condition holds. */
export function createdRuns(
  context: SqlContext,
  p: (name: GroupName) => Sql,
  { condition, parts = PARTS }: CreatedParams,
): Sql {
  const { tables, dialect } = context
  const columns = newRunColumns(context, valueOf(context, 't'), dialect.now)
  const runs = sql`created as (
      insert into ${tables.runs} (${namesOf(columns)}) select ${list(...Object.values(columns))}
      from ${rowsOf(context, p('runs'), NEW_RUN_VALUES)} where ${condition} order by t.n on conflict do nothing returning *)`
  const others: Readonly<Record<Part, () => Sql>> = {
    labels: () => sql`labelled as (
      insert into ${tables.run_labels} (run_id, name, value, tenant, created_at)
      select c.id, t."labelName", t."labelValue", c.tenant, c.created_at
      from ${rowsOf(context, p('labels'), LABEL_VALUES)} join created as c on c.id = t.id)`,
    events: () => sql`told as (
      insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
      select c.id, t.seq, t.type, ${valueOf(context, 't')('payload')}, ${dialect.now}
      from ${rowsOf(context, p('events'), EVENT_VALUES)} join created as c on c.id = t.id)`,
  }
  return list(runs, ...parts.map((part) => others[part]()))
}

export const NEW_RUN_VALUES = [
  ...(['id', 'tenant', 'jobName', 'jobVersion', 'payload', 'idempotencyKey'] as const),
  ...(['concurrencyKey', 'concurrencyLimit', 'holdKeyWhileWaiting', 'priority'] as const),
  ...([
    'startAt',
    'afterMs',
    'timeoutMs',
    'parentRunId',
    'scheduleId',
    'scheduledFor',
    'traceParent',
    'eventCount',
  ] as const),
]
