import { RUN_STATUSES, type RunQuery, type RunStatus } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { and, type Sql, type SqlContext, type SqlValue } from '../statement'

/** Of the pending ones, those that are counted apart: by what they wait for. */
export const WAITS = ['retry', 'unpark'] as const

export type Wait = (typeof WAITS)[number]

/** What a run is to be, wherever in the list it stands. */
export interface Conditions
  extends Omit<RunQuery, 'waitsForRetry' | 'parked' | 'createdFrom' | 'createdBefore' | 'limit' | 'cursor'> {
  /** It waits for one of these. */
  readonly waits?: readonly Wait[]
  /** It waits for none of these. */
  readonly waitsForNone?: readonly Wait[]
}

export function conditionsIn(query: RunQuery): Conditions {
  const { waitsForRetry, parked, idPrefix, statuses, waitsForKinds } = query
  const answers = [waitsForRetry, parked]
  const waits = WAITS.filter((_, index) => answers[index] === true)
  const waitsForNone = WAITS.filter((_, index) => answers[index] === false)
  const isPending = waits.length > 0 || waitsForKinds !== undefined
  return {
    ...ofEveryRun(query),
    ...(idPrefix !== undefined && idPrefix !== '' && { idPrefix }),
    ...(isPending ? { statuses: pendingOf(statuses) } : statuses !== undefined && { statuses }),
    // It waits for one thing at a time.
    ...(waits.length > 0 && { waits: waits.length > 1 ? [] : waits }),
    ...(waitsForNone.length > 0 && { waitsForNone }),
    ...(waitsForKinds !== undefined && { waitsForKinds }),
  }
}

function ofEveryRun({ ids, jobNames, tenant, labels, parentRunId, holdingKey, errorCode }: RunQuery): Conditions {
  return {
    ...(ids !== undefined && { ids }),
    ...(jobNames !== undefined && { jobNames: [...new Set(jobNames)] }),
    ...(tenant !== undefined && { tenant }),
    ...(labels !== undefined && { labels }),
    ...(parentRunId !== undefined && { parentRunId }),
    ...(holdingKey !== undefined && { holdingKey }),
    ...(errorCode !== undefined && { errorCode }),
  }
}

function pendingOf(statuses: readonly RunStatus[] = ['pending']): readonly RunStatus[] {
  return statuses.includes('pending') ? ['pending'] : []
}

/** A list matches what is in it. */
export function isOfNothing({ ids, statuses, jobNames, waits, waitsForKinds }: Conditions): boolean {
  return [ids, statuses, jobNames, waits, waitsForKinds].some((list) => list?.length === 0)
}

export function conditionsOf(context: SqlContext, conditions: Conditions): readonly Sql[] {
  const { ids, statuses, tenant, jobNames, labels = {}, waits, waitsForNone, waitsForKinds } = conditions
  const { parentRunId, holdingKey, idPrefix, errorCode } = conditions
  return [
    ...(ids === undefined ? [] : [oneOf(sql`r.id`, ids, context)]),
    ...(statuses === undefined ? [] : [isOfStatuses(statuses, context)]),
    ...(jobNames === undefined ? [] : [isOfJobs(jobNames, context)]),
    ...(tenant === undefined ? [] : [isOfTenant(tenant)]),
    ...(waits === undefined ? [] : [waitsForAny(context, waits)]),
    ...(waitsForNone === undefined ? [] : [waitsForOther(context, waitsForNone)]),
    ...(parentRunId === undefined ? [] : [isChildOf(parentRunId)]),
    ...(holdingKey === undefined ? [] : [holds(holdingKey)]),
    ...(idPrefix === undefined ? [] : [beginsWith(idPrefix)]),
    ...(errorCode === undefined ? [] : [HAS_ERROR, sql`${codeOf(context)} = ${errorCode}`]),
    ...(waitsForKinds === undefined ? [] : [isSuspended(context), hasWaitingStep(context, waitsForKinds)]),
    ...Object.entries(labels).map((label) => hasLabel(context, label)),
  ]
}

/** One alone stands in the text, so that its rarity is known when the way to its runs is chosen. */
export function isOfStatuses(statuses: readonly RunStatus[], context: SqlContext): Sql {
  const [only] = statuses
  const isOne = only !== undefined && statuses.length === 1 && RUN_STATUSES.includes(only)
  return isOne ? sql`r.status = ${sql.lit(only)}` : oneOf(sql`r.status`, statuses, context)
}

/** Equality where it will do: a planner makes more of it than of a list. */
export function isOfJobs(jobNames: readonly string[], context: SqlContext): Sql {
  const [jobName] = jobNames
  if (jobNames.length === 1 && jobName !== undefined) return sql`r.job_name = ${jobName}`
  return oneOf(sql`r.job_name`, jobNames, context)
}

export function isOfTenant(tenant: string): Sql {
  return sql`r.tenant = ${tenant}`
}

/** Whether the runs of one tenant are asked for: those of none are in no index by tenant. */
export function isSome(tenant: string | undefined): tenant is string {
  return tenant !== undefined && tenant !== ''
}

/** Others are in none of the indexes by tenant. */
export const HAS_TENANT = sql`r.tenant <> ''`

/**
 * For whoever reads by such an index, and names the tenant. SQLite cannot conclude from it that there is one; Postgres does, and
 * would take the runs for fewer if it were said as well.
 */
export function haveTenant({ dialect }: SqlContext, tenant: string | undefined): readonly Sql[] {
  return dialect.takesIndexes && isSome(tenant) ? [HAS_TENANT] : []
}

export function waitsForAny(context: SqlContext, waits: readonly Wait[]): Sql {
  return sql`${waitsFor(context)} in (${literal(waits)})`
}

function waitsForOther(context: SqlContext, waits: readonly Wait[]): Sql {
  const found = waitsFor(context)
  return sql`(${found} is null or ${found} not in (${literal(waits)}))`
}

export function isChildOf(parentRunId: string): Sql {
  return sql`r.parent_run_id = ${parentRunId}`
}

export function holds(key: string): Sql {
  return sql`r.concurrency_key = ${key} and r.concurrency_slot is not null`
}

/** No id has a character after this one. */
export function beginsWith(prefix: string): Sql {
  return sql`r.id >= ${prefix} and r.id < ${`${prefix}~`}`
}

export const HAS_ERROR = sql`r.error_detail is not null`

export function codeOf({ dialect }: SqlContext): Sql {
  return dialect.property(sql`r.error_detail`, 'code')
}

function isSuspended(context: SqlContext): Sql {
  return sql`${waitsFor(context)} = 'steps'`
}

/** A step `s` that waits. */
export function isOfWaitingKinds(kinds: readonly string[]): Sql {
  return sql`s.status = 'waiting' and s.kind in (${sql.join(kinds)})`
}

function hasWaitingStep({ tables, dialect }: SqlContext, kinds: readonly string[]): Sql {
  return sql`exists (select 1 from ${tables.steps} as s
      where s.run_id = r.id and ${isOfWaitingKinds(kinds)} ${dialect.keptApart})`
}

function hasLabel({ tables, dialect }: SqlContext, [name, value]: readonly [string, string]): Sql {
  return sql`exists (select 1 from ${tables.run_labels} as l2
      where l2.run_id = r.id and l2.name = ${name} and l2.value = ${value} ${dialect.keptApart})`
}

/** What a run waits for. */
export function waitsFor({ dialect }: SqlContext): Sql {
  return dialect.property(sql`r.waiting_for`, 'kind')
}

export function isWaiting({ dialect }: SqlContext): Sql {
  return sql`${dialect.waitingStatus(sql`r.status`)} = 'pending'`
}

export function oneOf(column: Sql, values: readonly SqlValue[], { dialect }: SqlContext): Sql {
  return sql`${column} in (select value from ${dialect.listOf(sql`${JSON.stringify(values)}`)})`
}

export function literal(values: readonly string[]): Sql {
  return sql.join(values.map((value) => sql.lit(value)))
}

export function where(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql`` : sql`where ${and(...conditions)}`
}
