import { CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely'
import { asVarying, type SqlDialect, type SqlType, type TableRefs } from '../dialect'
import type { Fences } from './fences'

export type Sql = RawBuilder<unknown>

export type SqlValue = string | number | null

/** What a statement is made from. */
export interface SqlContext {
  readonly db: Kysely<unknown>
  readonly prefix: string
  /** Of all tables; without one the database says where they are. */
  readonly schema: string | null
  readonly tables: TableRefs
  readonly dialect: SqlDialect
  readonly fences: Fences
  /** How many entries of an index one statement looks at that searches. */
  readonly stretch: number
}

/** A statement that Kysely compiled once. Binding values costs one array. */
export interface Statement<TName extends string> {
  bind(values: Readonly<Record<TName, SqlValue>>): CompiledQuery
  /** Values that come from two places need not become one object. Which has which is the same at each call. */
  bindBoth<TOther extends TName>(
    values: Readonly<Record<Exclude<TName, TOther>, SqlValue>>,
    others: Readonly<Record<TOther, SqlValue>>,
  ): CompiledQuery
}

/** What each parameter is. A name means the same in every statement, and one that is not listed does not compile. */
const PARAMETERS = {
  text: [
    ...['afterId', 'awaited', 'childId', 'childJob', 'childKey', 'childTenant', 'claimToken', 'commits'],
    ...[
      'concurrencyKey',
      'cursors',
      'dedupeKey',
      'ends',
      'error',
      'events',
      'firstId',
      'fireToken',
      'firings',
      'fromKey',
    ],
    ...['fromTenant', 'held', 'id', 'idempotencyKey', 'ids', 'jobName', 'jobVersion', 'jobs', 'keys', 'kind'],
    ...['labelName', 'labelValue', 'labels', 'leases', 'level', 'logId', 'logs', 'message', 'name', 'originId'],
    ...['outcome', 'outcomes', 'parentId', 'parentRunId', 'patience', 'positions', 'runId', 'runIds', 'runs'],
    ...['leaderId', 'leadName', 'cause', 'deliverToken', 'deliveries', 'messageId', 'messages', 'overlap'],
    ...['schedules', 'source', 'subscriptions', 'types', 'gathered', 'key', 'mode', 'releaseToken'],
    ...['scheduleId', 'signals', 'status', 'stepId', 'stepIds', 'stepName', 'steps', 'tenant', 'token', 'type'],
    ...[
      'waitName',
      'workerId',
      'noteId',
      'actor',
      'action',
      'settings',
      'traceParent',
      'tenantScope',
      'jobScope',
      'hours',
      'fromRunId',
      'assignments',
      'codeVersion',
      'options',
      'places',
      'placedJobs',
      'presence',
      'suspectsOf',
    ],
  ],
  integer: [
    ...['index', 'attempt', 'concurrencyLimit', 'holdKeyWhileWaiting', 'priority', 'epoch', 'leaderEpoch'],
    ...['commitNo', 'version', 'currentStepIndex', 'hasProgressed', 'holdsSuspect', 'looksAhead', 'isRefusing'],
    ...['crashCount', 'wakesSeen', 'wakesWanted', 'eventCount', 'cancelledEventCount', 'seq', 'afterSeq', 'offset'],
    ...['back', 'limit', 'position', 'place', 'isCancelled', 'concurrency', 'maxStarts'],
    ...['fired', 'max', 'maxBytes', 'missed', 'round', 'wanted'],
    ...['started', 'completed', 'failed', 'timedOut', 'cancelled', 'capacity', 'isLeaderless', 'perJob'],
  ],
  ms: [
    'afterMs',
    'timeoutMs',
    'leaseMs',
    'delayMs',
    'dueInMs',
    'restMs',
    'minusDurationMs',
    'perMs',
    'ttlMs',
    'olderThanMs',
    'waitMs',
    'maxWaitMs',
    'reassignAfterMs',
    'livingAfterMs',
    'silentForMs',
  ],
  instant: [
    'startAt',
    'scheduledFor',
    'dueAt',
    'timestamp',
    'firedUntil',
    'nextAt',
    'finishedAt',
    'fromFinishedAt',
    'hour',
    'beforeHour',
  ],
  json: [
    'payload',
    'query',
    'output',
    'checkpoint',
    'errorDetail',
    'progress',
    'waitingFor',
    'data',
    'definition',
    'value',
    'durations',
    'waits',
  ],
} as const satisfies Readonly<Record<SqlType, readonly string[]>>

/** The name of a parameter. */
export type ParameterName = (typeof PARAMETERS)[SqlType][number]

const TYPE_OF: ReadonlyMap<string, SqlType> = new Map(
  Object.entries(PARAMETERS).flatMap(([type, names]) => names.map((name) => [name, type as SqlType] as const)),
)

export function parameterType(name: ParameterName): SqlType {
  return TYPE_OF.get(name) as SqlType
}

/** Stands in the compiled parameters where a value goes. */
class Marker {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** Compiled at the first use. `build` gets a function that names the parameters. */
export function statement<TName extends ParameterName>(
  context: SqlContext,
  build: (parameter: (name: TName) => Sql) => Sql,
): Statement<TName> {
  let compiled: { readonly query: CompiledQuery; readonly names: readonly (TName | null)[] } | undefined
  let isOther: readonly boolean[] | undefined
  return {
    bind(values) {
      compiled ??= compile(context, build)
      const { query, names } = compiled
      const parameters = names.map((name, index) => (name === null ? query.parameters[index] : values[name]))
      return { sql: query.sql, query: query.query, queryId: query.queryId, parameters }
    },
    bindBoth(values, others) {
      compiled ??= compile(context, build)
      const { query, names } = compiled
      isOther ??= names.map((name) => name !== null && name in others)
      const parameters: unknown[] = []
      for (let index = 0; index < names.length; index++) {
        const name = names[index] as string | null
        const source = (isOther[index] === true ? others : values) as Readonly<Record<string, SqlValue>>
        parameters.push(name === null ? query.parameters[index] : source[name])
      }
      return { sql: query.sql, query: query.query, queryId: query.queryId, parameters }
    },
  }
}

function compile<TName extends ParameterName>(context: SqlContext, build: (parameter: (name: TName) => Sql) => Sql) {
  const parameter = (name: TName) => context.dialect.parameter(sql`${new Marker(name)}`, parameterType(name))
  const query = build(parameter).compile(context.db)
  const names = query.parameters.map((value) => (value instanceof Marker ? (value.name as TName) : null))
  return { query: CompiledQuery.raw(query.sql, [...query.parameters]), names }
}

/** For statements whose shape depends on their arguments; not for hot ones: Postgres plans them anew each time. */
export function compileQuery(context: SqlContext, query: Sql): CompiledQuery {
  const { sql: text, parameters } = query.compile(context.db)
  return asVarying(CompiledQuery.raw(text, [...parameters]))
}

export function and(...conditions: readonly Sql[]): Sql {
  return sql.join(conditions, sql` and `)
}

export type RunIndex =
  | ('claim' | 'claim_keyless' | 'claim_by_key' | 'slot' | 'due' | 'running' | 'finished' | 'job_finished')
  | ('placing' | 'assigned' | 'orphaned')
  | (
      | 'primary'
      | 'parent'
      | 'error_code'
      | 'waiting_kind'
      | 'created'
      | 'status_created'
      | 'job_created'
      | 'of_tenant'
      | 'of_tenant_status'
      | 'of_tenant_job'
    )

/** The table of runs as `r`, read through one of its indexes. */
export function runsBy({ tables, dialect, prefix }: SqlContext, index: RunIndex): Sql {
  const name = index === 'primary' ? `sqlite_autoindex_${prefix}runs_1` : `${prefix}runs_${index}`
  return sql`${tables.runs} as r ${dialect.useIndex(name)}`
}

/** A comma-separated list. */
export function list(...items: readonly Sql[]): Sql {
  return sql.join(items)
}

/** For `update … set`. */
export function assignments(changes: Readonly<Record<string, Sql>>): Sql {
  return list(...Object.entries(changes).map(([column, value]) => sql`${sql.ref(column)} = ${value}`))
}

export function namesOf(columns: Readonly<Record<string, Sql>>): Sql {
  return list(...Object.keys(columns).map((name) => sql.ref(name)))
}
