import {
  type CommitAnswer,
  type EventTemplate,
  isEnded,
  type Outcome,
  type RunCommit,
  type RunStatus,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import {
  keepChanges,
  outcomeChanges,
  logColumns,
  overwriteStep,
  stepColumns,
  kept,
  runValues,
  stepValues,
} from './commit-columns'
import {
  assignments,
  awaitersOf,
  holds,
  list,
  type ListedRow,
  namesOf,
  rowsOf,
  type Sql,
  type SqlContext,
  type SqlValue,
  type Statement,
  statement,
  valueOf,
  wokenByChildren,
  type WriteTarget,
} from '../statement'
import { OUTCOMES } from './outcomes'
import { lockedRuns, lockTerms, patience, type PatienceName, type Waiting } from './row-locks'

type GroupCommit = (
  target: WriteTarget,
  commits: readonly RunCommit[],
  /** For rows that somebody else has locked. Without any, it passes over what is held. */
  patienceMs: number | null,
) => Promise<readonly (CommitAnswer | null)[]>

export const BUSY: CommitAnswer = Object.freeze({ kept: false, isBusy: true })

/** What commits bring beside the change of their run. Each part that no commit of a group has is left out. */
const PARTS = ['steps', 'logs', 'events', 'signals', 'outcomes'] as const

type Part = (typeof PARTS)[number]
type GroupName = Part | 'commits' | PatienceName
type Parcel = Readonly<Record<Part | 'commits', readonly ListedRow[]>>

/**
 * For Postgres: the commits of many runs in one statement and one round trip. It locks the rows of the runs first, sees
 * which leases hold, and does the rest for those; a commit whose lease is lost is passed over, and so is, for who never
 * waits, one whose run or parent somebody else has locked.
 */
export function createGroupCommit(context: SqlContext): GroupCommit {
  const statements = new Map<string, Statement<GroupName>>()

  function statementFor(parts: readonly Part[], waiting: Waiting): Statement<GroupName> {
    const key = [waiting, ...parts].join()
    const known = statements.get(key) ?? groupStatement(context, new Set(parts), waiting)
    statements.set(key, known)
    return known
  }

  return async function groupCommit(target, commits, patienceMs) {
    const parcel = parcelOf(commits)
    const parts = PARTS.filter((part) => parcel[part].length > 0)
    const texts = Object.fromEntries(Object.entries(parcel).map(([name, rows]) => [name, JSON.stringify(rows)]))
    const query = statementFor(parts, patienceMs === null ? 'never' : 'briefly').bind({
      ...(texts as Record<Part | 'commits', string>),
      ...patience(patienceMs ?? 0),
    })
    const [rows = []] = await target.write([query])
    const answers: (CommitAnswer | null)[] = commits.map(() => null)
    for (const row of rows) answers[Number(row['n'])] = row['status'] === null ? BUSY : kept(row, [])
    return answers
  }
}

function parcelOf(commits: readonly RunCommit[]): Parcel {
  const parcel = {
    commits: [] as ListedRow[],
    steps: [] as ListedRow[],
    logs: [] as ListedRow[],
    events: [] as ListedRow[],
    signals: [] as ListedRow[],
  }
  const outcomes: ListedRow[] = []
  for (const [n, commit] of commits.entries()) {
    const { lease, commitNo, outcome, events } = commit
    const kind = outcome?.kind ?? null
    parcel.commits.push({ n, ...lease, commitNo, ...runValues(commit), outcome: kind })
    parcel.steps.push(...lastWrites(commit).map((step, place) => ({ n, place, ...step })))
    parcel.logs.push(...commit.logs.map(({ id, ...log }, place) => ({ n, place, logId: id, ...log })))
    parcel.events.push(...eventRows(events, { n, after: 0, isCancelled: null }))
    parcel.signals.push(...commit.consumedSignals.map((position) => ({ n, position })))
    if (outcome === null) continue
    outcomes.push({ n })
    parcel.events.push(
      ...eventRows(outcome.events, { n, after: events.length, isCancelled: 0 }),
      ...eventRows(outcome.eventsIfCancelled, { n, after: events.length, isCancelled: 1 }),
    )
  }
  return { ...parcel, outcomes }
}

/** One statement writes a row once: a row that a commit writes twice is written as it is in the end. */
function lastWrites({ steps }: RunCommit): readonly ListedRow[] {
  const rows = new Map<string, Record<string, SqlValue>>()
  for (const step of steps) {
    const before = rows.get(step.id)
    const values = stepValues(step)
    const due = before === undefined || (before['dueAt'] === null && before['dueInMs'] === null) ? values : before
    rows.delete(step.id)
    rows.set(step.id, { ...values, dueAt: due['dueAt'] ?? null, dueInMs: due['dueInMs'] ?? null })
  }
  return [...rows.values()]
}

interface EventPlace {
  readonly n: number
  readonly after: number
  /** Whether it is for a run that becomes cancelled, or for one that does not; `null` for both. */
  readonly isCancelled: 0 | 1 | null
}

function eventRows(events: readonly EventTemplate[], { n, after, isCancelled }: EventPlace): ListedRow[] {
  return events.map(({ type, payload }, index) => ({ n, offset: after + index + 1, type, payload, isCancelled }))
}

const COMMIT_VALUES = ['runId', 'epoch', 'token', 'leaderEpoch', 'commitNo', 'outcome'] as const
const RUN_VALUES = [
  'leaseMs',
  'currentStepIndex',
  'progress',
  'hasProgressed',
  'eventCount',
  'cancelledEventCount',
] as const
const OUTCOME_VALUES = [
  ...(['output', 'error', 'errorDetail', 'delayMs', 'waitingFor'] as const),
  ...(['wakesSeen', 'wakesWanted', 'restMs', 'awaited'] as const),
]
const STEP_VALUES = [
  'place',
  ...([
    'stepId',
    'name',
    'index',
    'kind',
    'status',
    'attempt',
    'output',
    'error',
    'errorDetail',
    'checkpoint',
  ] as const),
  ...(['waitName', 'dueAt', 'dueInMs', 'minusDurationMs'] as const),
] as const
const LOG_VALUES = ['place', 'logId', 'stepName', 'level', 'message', 'data', 'timestamp'] as const
const EVENT_VALUES = ['offset', 'type', 'payload', 'isCancelled'] as const

function groupStatement(context: SqlContext, parts: ReadonlySet<Part>, waiting: Waiting): Statement<GroupName> {
  return statement<GroupName>(context, (p) => {
    const writes = [
      ...(parts.has('steps') ? [stepsWrite(context, p('steps'))] : []),
      ...(parts.has('logs') ? [logsWrite(context, p('logs'))] : []),
      ...(parts.has('events') ? [eventsWrite(context, p('events'))] : []),
      ...(parts.has('signals') ? [signalsWrite(context, p('signals'))] : []),
    ]
    const passedOver = sql`union all select n, null, null, null, null from busy`
    const held = heldRuns(context, { commits: p('commits'), parts, terms: lockTerms(waiting, p) })
    return sql`with ${list(...held, ...writes, changeWrite(context, parts))}
      select n, status, last_event_sequence, wakes, cancel_requested_at from changed where n is not null
      ${waiting === 'never' ? passedOver : sql``}`
  })
}

interface HeldParams {
  readonly commits: Sql
  readonly parts: ReadonlySet<Part>
  readonly terms: ReturnType<typeof lockTerms>
}

/**
 * `held`: the commits whose lease holds, with what their run has now that it is locked. A run that ends changes those
 * that wait for it, so it is as busy as they are; one that is not there any more keeps nobody waiting.
 */
function heldRuns(context: SqlContext, { commits, parts, terms }: HeldParams): Sql[] {
  const { tables, dialect, fences } = context
  const names = [...COMMIT_VALUES, ...RUN_VALUES, ...OUTCOME_VALUES]
  const value = valueOf(context, 'c')
  // One lookup for each: to the planner a list has a hundred entries, and it would rather read a table of some thousand runs.
  const ended = sql`select r.parent_run_id, r.also_awaited_by from ${tables.runs} as r where r.id = c."runId" offset 0`
  const parents = sql`union all select c.n, w.id from c cross join lateral (${ended}) as r
    cross join lateral (${awaitersOf(context)}) as w where c.outcome is not null`
  const touched = sql`select c.n, c."runId" as id from c ${parts.has('outcomes') ? parents : sql``}`
  const fence = holds(fences, dialect, {
    runId: value('runId'),
    epoch: value('epoch'),
    token: value('token'),
    leaderEpoch: value('leaderEpoch'),
    commitNo: value('commitNo'),
  })
  const busy = sql`busy as materialized (
    select distinct t.n from (${touched}) as t join ${tables.runs} as r on r.id = t.id
    where not exists (select 1 from locked where locked.id = t.id))`
  return [
    sql`c as materialized (select * from ${rowsOf(context, commits, names)})`,
    lockedRuns(context, sql`select id from (${touched}) as t`, terms),
    ...(terms.waiting === 'never' ? [busy] : []),
    sql`held as materialized (
      select c.*, r.id, r.lease_epoch, r.claim_token, r.last_event_sequence, r.parent_run_id, r.also_awaited_by,
        r.cancel_requested_at is not null as is_flagged
      from c join locked as r on ${fence} ${terms.waiting === 'never' ? sql`where c.n not in (select n from busy)` : sql``})`,
  ]
}

function stepsWrite(context: SqlContext, steps: Sql): Sql {
  const { tables } = context
  const value = valueOf(context, 's')
  const columns = stepColumns(context, value, value('output'))
  return sql`s as materialized (select * from ${rowsOf(context, steps, STEP_VALUES)}),
    written as (
      insert into ${tables.steps} as s (${namesOf(columns)})
      select ${list(...Object.values(columns))} from s join held as r on r.n = s.n order by s.n, s.place
      ${overwriteStep(columns)} returning run_id, name, status, due_at)`
}

function logsWrite(context: SqlContext, logs: Sql): Sql {
  const columns = logColumns(valueOf(context, 't'))
  return sql`logged as (
    insert into ${context.tables.logs} (${namesOf(columns)})
    select ${list(...Object.values(columns))} from ${rowsOf(context, logs, LOG_VALUES)} join held as r on r.n = t.n
    order by t.n, t.place on conflict (id) do nothing)`
}

function eventsWrite(context: SqlContext, events: Sql): Sql {
  const { tables, dialect } = context
  const value = valueOf(context, 't')
  return sql`told as (
    insert into ${tables.run_events} (run_id, seq, event_type, payload, created_at)
    select r.id, r.last_event_sequence + t."offset", t.type, ${value('payload')}, ${dialect.now}
    from ${rowsOf(context, events, EVENT_VALUES)} join held as r on r.n = t.n
    where t."isCancelled" is null or (t."isCancelled" = 1) = r.is_flagged)`
}

function signalsWrite(context: SqlContext, signals: Sql): Sql {
  const { tables, dialect } = context
  return sql`consumed as (
    update ${tables.signals} as g set consumed_at = ${dialect.now}
    from ${rowsOf(context, signals, ['position'])} join held as r on r.n = t.n
    where g.run_id = r.id and g.position = t.position and g.consumed_at is null)`
}

/**
 * `changed`: the runs of the commits, and the parents of those that end. A parent can be a run of the same group, and
 * one statement changes a row once only, so both are one update.
 */
function changeWrite(context: SqlContext, parts: ReadonlySet<Part>): Sql {
  const { tables, dialect } = context
  const changes = commitChanges(context, parts)
  if (!parts.has('outcomes')) {
    return sql`changed as (
      update ${tables.runs} as r set ${assignments(changes)} from held as h where r.id = h.id
      returning h.n, r.status, r.last_event_sequence, r.wakes, r.cancel_requested_at)`
  }
  const ends = sql`r.is_flagged or r.outcome in (${list(...ENDING_KINDS.map((kind) => sql.lit(kind)))})`
  return sql`woken as materialized (
      select w.id, count(*) as wakes from held as r cross join lateral (${awaitersOf(context)}) as w
      where r.outcome is not null and (${ends}) group by w.id),
    h as materialized (
      select coalesce(held.id, woken.id) as id, held."runId", woken.wakes as woken, ${commitColumns('held')}
      from held full join woken on woken.id = held.id),
    changed as (
      update ${tables.runs} as r set ${assignments(withWakes(context, changes))} from h
      where ${dialect.isAmong(sql`r.id`, sql`select id from h`)} and r.id = h.id
        and (h.n is not null or r.finished_at is null)
      returning h.n, r.status, r.last_event_sequence, r.wakes, r.cancel_requested_at)`
}

const KINDS = Object.keys(OUTCOMES) as Outcome['kind'][]
const ENDING_KINDS = KINDS.filter((kind) => isEnded(OUTCOMES[kind].status satisfies RunStatus))

function commitColumns(alias: string): Sql {
  const names = ['n', 'commitNo', 'outcome', ...RUN_VALUES, ...OUTCOME_VALUES]
  return list(...names.map((name) => sql.ref(`${alias}.${name}`)))
}

/** What a commit changes on its run, by its outcome. */
function commitChanges(context: SqlContext, parts: ReadonlySet<Part>): Readonly<Record<string, Sql>> {
  const value = valueOf(context, 'h')
  const keep = keepChanges(context, value)
  if (!parts.has('outcomes')) return keep
  const waitsEnd = waitsOf(context, parts)
  const byKind = KINDS.map((kind) => [kind, outcomeChanges(context, { kind, value, waitsEnd, wakes: WAKES })] as const)
  const columns = new Set([...Object.keys(keep), ...byKind.flatMap(([, changes]) => Object.keys(changes))])
  const changeOf = (column: string) => {
    const leave = byKind.map(
      ([kind, changes]) => sql`when ${sql.lit(kind)} then ${changes[column] ?? sql.ref(`r.${column}`)}`,
    )
    return sql`case h.outcome ${sql.join(leave, sql` `)} else ${keep[column] ?? sql.ref(`r.${column}`)} end`
  }
  return Object.fromEntries([...columns].map((column) => [column, changeOf(column)]))
}

/** The waits that were there before and are not written over, and those that the same statement writes. */
function waitsOf({ tables, dialect }: SqlContext, parts: ReadonlySet<Part>): Sql {
  const isAwaited = sql`w.run_id = r.id and w.status = 'waiting' and w.name in (
    select value from ${dialect.listOf(sql`h.awaited`)})`
  const stored = sql`select w.due_at from ${tables.steps} as w where ${isAwaited}`
  if (!parts.has('steps')) return stored
  return sql`${stored} and not exists (select 1 from s where s."stepId" = w.id)
    union all select w.due_at from written as w where ${isAwaited}`
}

const WAKES = sql`(r.wakes + coalesce(h.woken, 0))`

/** A run that is only woken changes as every woken run does; one that commits as well counts it. */
function withWakes(context: SqlContext, changes: Readonly<Record<string, Sql>>): Readonly<Record<string, Sql>> {
  const woken = wokenByChildren(context, 'r', sql`coalesce(h.woken, 0)`)
  const both = { ...changes, wakes: WAKES }
  const names = new Set([...Object.keys(both), ...Object.keys(woken)])
  const change = (name: string) => {
    const unchanged = sql.ref(`r.${name}`)
    const together = (both as Readonly<Record<string, Sql>>)[name] ?? unchanged
    return sql`case when h.n is null then ${woken[name] ?? unchanged} else ${together} end`
  }
  return Object.fromEntries([...names].map((name) => [name, change(name)]))
}
