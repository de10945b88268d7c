import { sql } from 'kysely'
import { type RunIndex, runsBy, type Sql, type SqlContext } from '../statement'
import {
  beginsWith,
  codeOf,
  type Conditions,
  conditionsOf,
  HAS_ERROR,
  HAS_TENANT,
  haveTenant,
  holds,
  isChildOf,
  isOfStatuses,
  isOfTenant,
  isSome,
  isOfWaitingKinds,
  oneOf,
  WAITS,
  waitsFor,
  waitsForAny,
  where,
} from './run-conditions'
import type { Key, Walk } from './run-walks'

/** How to come to the runs of a query. */
export interface Way {
  /** Each has some of them, all together have them all. */
  readonly walks: readonly Walk[]
  /** What is yet to be looked at, run by run. */
  readonly rest: readonly Sql[]
  /** Whether its indexes have the entries newest first. */
  readonly isInOrder: boolean
  /** Of those that are in another order: what is counted to know whether they are few. `null`: they always are. */
  readonly size: Sql | null
}

/** The narrowest ones first, as far as that can be told without a look. The last one always leads there, in the order of the list. */
export function waysOf(context: SqlContext, conditions: Conditions): readonly Way[] {
  const few = wayOfFew(context, conditions)
  if (few !== null) return [few]
  return [
    ...ofParent(context, conditions),
    ...ofCode(context, conditions),
    ...ofWaitingSteps(context, conditions),
    ...ofWaits(context, conditions),
    ...ofPrefix(context, conditions),
    ...ofLabels(context, conditions),
    ...ofJobs(context, conditions),
    ...ofStatuses(context, conditions),
    ofAll(context, conditions),
  ]
}

/** An index that has nothing but the runs of a query, in the order of the list: a page looks at no more than is on it. */
export function sureWay(ways: readonly Way[]): Way | undefined {
  return ways.find(({ isInOrder, rest }) => isInOrder && rest.length === 0)
}

const OF_RUN = [sql`r.created_at`, sql`r.id`] as const
const OF_LABEL = [sql`q.created_at`, sql`q.run_id`] as const

function runsWalk(context: SqlContext, index: RunIndex, of: Partial<Pick<Walk, 'keys' | 'conditions'>>): Walk {
  const hasIds = index !== 'status_created'
  return { entries: runsBy(context, index), keys: [], conditions: [], ...of, place: OF_RUN, hasIds }
}

/** The tenant comes first in those indexes that have it. */
function ofTenant(tenant: string | undefined, column: Sql = sql`r.tenant`): readonly Key[] {
  return tenant === undefined ? [] : [{ column, value: sql`${tenant}` }]
}

function inOrder(context: SqlContext, walks: readonly Walk[], rest: Conditions): Way {
  return { walks, rest: conditionsOf(context, rest), isInOrder: true, size: null }
}

interface OtherOrder {
  readonly walk: Walk
  readonly size: Sql | null
  readonly rest: Conditions
}

function inOtherOrder(context: SqlContext, { walk, size, rest }: OtherOrder): Way {
  return { walks: [walk], rest: conditionsOf(context, rest), isInOrder: false, size }
}

/** Runs that are named are as many as have been named, and holders of a key as it has slots. */
function wayOfFew(context: SqlContext, conditions: Conditions): Way | null {
  const { ids, ...others } = conditions
  if (ids !== undefined) {
    const walk = runsWalk(context, 'primary', { conditions: [oneOf(sql`r.id`, ids, context)] })
    return inOtherOrder(context, { walk, size: null, rest: others })
  }
  const { holdingKey, tenant, ...rest } = conditions
  if (holdingKey === undefined || tenant === undefined) return null
  const walk = runsWalk(context, 'slot', { conditions: [isOfTenant(tenant), holds(holdingKey)] })
  return inOtherOrder(context, { walk, size: null, rest })
}

function ofParent(context: SqlContext, { parentRunId, ...rest }: Conditions): readonly Way[] {
  if (parentRunId === undefined) return []
  const walk = runsWalk(context, 'parent', { conditions: [isChildOf(parentRunId)] })
  return [inOtherOrder(context, { walk, size: entriesOf(walk), rest })]
}

function ofCode(context: SqlContext, { errorCode, ...rest }: Conditions): readonly Way[] {
  if (errorCode === undefined) return []
  const keys = [{ column: codeOf(context), value: sql`${errorCode}` }]
  return [inOrder(context, [runsWalk(context, 'error_code', { keys, conditions: [HAS_ERROR] })], rest)]
}

/** The kinds are a condition of the run as well: it may have been cancelled, and its steps wait on. */
function ofWaitingSteps(context: SqlContext, conditions: Conditions): readonly Way[] {
  const { waitsForKinds } = conditions
  if (waitsForKinds === undefined) return []
  const { tables, dialect } = context
  const steps = sql`from ${tables.steps} as s where ${isOfWaitingKinds(waitsForKinds)}`
  const isWaiting = dialect.isAmong(sql`r.id`, sql`select s.run_id ${steps}`)
  const walk = runsWalk(context, 'primary', { conditions: [isWaiting] })
  return [inOtherOrder(context, { walk, size: steps, rest: conditions })]
}

function ofWaits(context: SqlContext, { waits, statuses: _, tenant, ...rest }: Conditions): readonly Way[] {
  if (waits === undefined || !context.dialect.hasIndexOfParked) return []
  const isPending = isOfStatuses(['pending'], context)
  const [wait] = waits
  if (tenant !== undefined && wait !== undefined && waits.length === 1) {
    const keys = [{ column: waitsFor(context), value: sql.lit(wait) }, ...ofTenant(tenant)]
    const conditions = [isPending, waitsForAny(context, WAITS)]
    return [inOrder(context, [runsWalk(context, 'waiting_kind', { keys, conditions })], rest)]
  }
  const walk = runsWalk(context, 'waiting_kind', { conditions: [isPending, waitsForAny(context, waits)] })
  const all = { ...rest, ...(tenant !== undefined && { tenant }) }
  return [inOtherOrder(context, { walk, size: entriesOf(walk), rest: all })]
}

function ofPrefix(context: SqlContext, { idPrefix, ...rest }: Conditions): readonly Way[] {
  if (idPrefix === undefined) return []
  const walk = runsWalk(context, 'primary', { conditions: [beginsWith(idPrefix)] })
  return [inOtherOrder(context, { walk, size: entriesOf(walk), rest })]
}

function ofLabels(context: SqlContext, { labels = {}, tenant, ...rest }: Conditions): readonly Way[] {
  const { tables, dialect, prefix } = context
  const index = dialect.useIndex(`${prefix}run_labels_${tenant === undefined ? 'value' : 'tenant_value'}`)
  return Object.entries(labels).map(([name, value]) => {
    const { [name]: _, ...others } = labels
    const ofLabel = [
      { column: sql`q.name`, value: sql`${name}` },
      { column: sql`q.value`, value: sql`${value}` },
    ]
    const walk = {
      entries: sql`${tables.run_labels} as q ${index}`,
      keys: [...ofTenant(tenant, sql`q.tenant`), ...ofLabel],
      conditions: [],
      place: OF_LABEL,
      hasIds: true,
      runId: sql`q.run_id`,
    }
    return inOrder(context, [walk], { ...rest, labels: others })
  })
}

/** More than these are not looked for one by one. */
export const MOST_JOBS = 50

function ofJobs(context: SqlContext, { jobNames = [], ...others }: Conditions): readonly Way[] {
  if (jobNames.length === 0 || jobNames.length > MOST_JOBS) return []
  const keys = jobNames.map((jobName) => ({ column: sql`r.job_name`, value: sql`${jobName}` }))
  return [inOrderOfTime(context, { ofAll: 'job_created', ofTenant: 'of_tenant_job', keys }, others)]
}

function ofStatuses(context: SqlContext, { statuses = [], ...others }: Conditions): readonly Way[] {
  if (statuses.length === 0) return []
  const keys = [...new Set(statuses)].map((status) => ({ column: sql`r.status`, value: sql.lit(status) }))
  return [inOrderOfTime(context, { ofAll: 'status_created', ofTenant: 'of_tenant_status', keys }, others)]
}

function ofAll(context: SqlContext, conditions: Conditions): Way {
  return inOrderOfTime(context, { ofAll: 'created', ofTenant: 'of_tenant', keys: [null] }, conditions)
}

interface OfTime {
  readonly ofAll: RunIndex
  /** It begins with the tenant, and has the runs of tenants only. */
  readonly ofTenant: RunIndex
  /** A walk for each: of `null`, all runs. */
  readonly keys: readonly (Key | null)[]
}

/** Runs of no tenant are looked for among all. */
function inOrderOfTime(context: SqlContext, { keys, ...index }: OfTime, { tenant, ...rest }: Conditions): Way {
  const walks = keys.map((key) => {
    const ofKey = key === null ? [] : [key]
    if (!isSome(tenant)) return runsWalk(context, index.ofAll, { keys: ofKey })
    // The last key may be compared as part of a row, from which nobody concludes anything.
    const conditions = key === null ? [HAS_TENANT] : haveTenant(context, tenant)
    return runsWalk(context, index.ofTenant, { keys: [...ofTenant(tenant), ...ofKey], conditions })
  })
  return inOrder(context, walks, { ...rest, ...(tenant === '' && { tenant }) })
}

/** Of those that have no keys. */
function entriesOf({ entries, conditions }: Walk): Sql {
  return sql`from ${entries} ${where(conditions)}`
}
