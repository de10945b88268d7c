import { type CountQuery, type EndedStatus, RUN_STATUSES, type RunStatus } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import type { Rows } from '../dialect'
import { and, compileQuery, type RunIndex, runsBy, type Sql, type SqlContext } from '../statement'
import type { Reader } from './reader'
import {
  conditionsOf,
  HAS_TENANT,
  haveTenant,
  isOfJobs,
  isOfNothing,
  isOfTenant,
  isSome,
  isWaiting,
  literal,
  WAITS,
  waitsFor,
  where,
} from './run-conditions'
import {
  answersOf,
  entriesIn,
  firstStretch,
  readStretch,
  runsIn,
  type Search,
  type Searcher,
  searchOf,
  type Stretch,
} from './run-search'
import { inOrderOfIndex } from './run-walks'
import { MOST_JOBS, type Way, waysOf } from './run-ways'
import { inTurns } from './turns'

/** How many runs have each status, and how many of the pending ones wait for what is counted apart. */
export type Tally = ReadonlyMap<string, number>

export async function countRuns(context: SqlContext, reader: Reader, query: CountQuery): Promise<Tally> {
  const { upTo, ...asked } = query
  const search = searchOf(asked)
  if (isOfNothing(search.conditions)) return new Map()
  const searcher = { context, reader: inTurns(reader) }
  if (upTo !== undefined) return countUpTo({ ...searcher, upTo }, search)
  const { tenant: _, jobNames: __, ...others } = asked
  const isOfScope = Object.values(others).every((condition) => condition === undefined)
  return isOfScope ? tallyOf(await reader.read(countOfScope(context, search))) : countAtOnce(searcher, search)
}

/** One statement, so that no run is counted twice or left out because it changes between two. The statuses come from an index alone. */
function countOfScope(context: SqlContext, { conditions }: Search): CompiledQuery {
  const { tables } = context
  const { jobNames, tenant } = conditions
  if (jobNames !== undefined && jobNames.length <= MOST_JOBS) {
    const counts = tenant === undefined ? countsOfJobs(context, jobNames) : countsWithin(context, tenant, jobNames)
    return compileQuery(context, sql.join(counts, sql` union all `))
  }
  const scope = [...haveTenant(context, tenant), ...conditionsOf(context, conditions)]
  const kind = waitsFor(context)
  const waiting = and(...scope, sql`r.status = 'pending'`, sql`${kind} in (${literal(WAITS)})`)
  return compileQuery(
    context,
    sql`${tenant === '' && jobNames === undefined ? statusesOfNoTenant(context) : statusesOf(context, scope)}
      union all select ${kind}, count(*) as runs from ${tables.runs} as r where ${waiting} group by ${kind}`,
  )
}

function statusesOf({ tables }: SqlContext, scope: readonly Sql[]): Sql {
  return sql`select r.status, count(*) as runs from ${tables.runs} as r ${where(scope)} group by r.status`
}

/** No index has them: all, less those that have a tenant. */
function statusesOfNoTenant(context: SqlContext): Sql {
  const { tables } = context
  return sql`${statusesOf(context, [])}
    union all select r.status, -count(*) from ${tables.runs} as r where ${HAS_TENANT} group by r.status`
}

/** What is neither pending nor over is in somebody's hands, and no more than there are hands for. */
const IN_HAND = {
  running: 'running',
  assigned: 'assigned',
  orphaned: 'orphaned',
} as const satisfies Readonly<Record<Exclude<RunStatus, EndedStatus | 'pending'>, RunIndex>>

/** Each part has an index that has nothing of other jobs, or that is short. */
function countsOfJobs(context: SqlContext, jobNames: readonly string[]): readonly Sql[] {
  const kind = waitsFor(context)
  const ofJobs = isOfJobs(jobNames, context)
  const ofEach = jobNames.flatMap((jobName) => [
    sql`select r.status, cast(null as text) as kind, count(*) as runs from ${runsBy(context, 'job_finished')}
      where ${isOfJobs([jobName], context)} and r.finished_at is not null group by r.status`,
    sql`select 'pending', ${kind}, count(*) from ${runsBy(context, 'due')}
      where ${isOfJobs([jobName], context)} and ${isWaiting(context)} group by ${kind}`,
  ])
  const inHand = Object.entries(IN_HAND).map(([status, index]) => {
    const isInHand = sql`r.status = ${sql.lit(status)} and ${context.dialect.waitingStatus(sql`r.status`)} = ${sql.lit(status)}`
    return sql`select ${sql.lit(status)}, cast(null as text), count(*) from ${runsBy(context, index)} where ${isInHand} and ${ofJobs}`
  })
  return [...ofEach, ...inHand]
}

function countsWithin(context: SqlContext, tenant: string, jobNames: readonly string[]): readonly Sql[] {
  const kind = waitsFor(context)
  return jobNames.map((jobName) => {
    const scope = and(...haveTenant(context, tenant), isOfTenant(tenant), isOfJobs([jobName], context))
    return sql`select r.status, ${kind} as kind, count(*) as runs
      from ${runsBy(context, isSome(tenant) ? 'of_tenant_job' : 'job_created')} where ${scope} group by r.status, ${kind}`
  })
}

/** On the way that comes furthest at the beginning of the list; then in one statement, for the same reason. */
async function countAtOnce(searcher: Searcher, search: Search): Promise<Tally> {
  const { context, reader } = searcher
  const { way } = await firstStretch(searcher, search)
  const whole = { way, part: search.part, isUnmeasured: true }
  return tallyOf(await reader.read(compileQuery(context, countOfStretch(context, whole))))
}

/** Of a list with no more than one stretch. `null`: it is longer. */
async function countFew(searcher: Searcher, search: Search): Promise<Tally | null> {
  const first = await firstStretch(searcher, search)
  if (first.part.until !== undefined) return null
  const rows = await readStretch(searcher, first, { query: countOfStretch(searcher.context, first) })
  return rows === null ? null : tallyOf(rows)
}

interface Counting extends Searcher {
  readonly upTo: number
}

/** What is searched to know these numbers. */
interface Counter {
  readonly names: readonly string[]
  readonly search: Search
}

/** One statement for all where few runs are in question, and for those numbers whose runs an index has. */
async function countUpTo(counting: Counting, search: Search): Promise<Tally> {
  const { context } = counting
  const [statuses, waits] = [statusCounters(search), waitCounters(search)]
  const isListed = ({ search }: Counter) => wayOfCount(context, search) !== undefined
  const few = statuses.every(isListed) ? null : await countFew(counting, search)
  if (few !== null) return few
  const tally = new Map(await countListed(counting, [...statuses, ...waits].filter(isListed)))
  const through = async (counter: Counter) => {
    for (const [name, runs] of await countThrough(counting, counter)) tally.set(name, runs)
  }
  for (const counter of statuses) if (!isListed(counter)) await through(counter)
  const openWaits = waits.filter((counter) => !isListed(counter))
  if (openWaits.length > 0 && tally.get('pending') !== 0) await through(together(openWaits))
  return tally
}

function statusCounters({ conditions, part }: Search): readonly Counter[] {
  const statuses = new Set(conditions.statuses ?? RUN_STATUSES)
  return [...statuses].map((status) => ({
    names: [status],
    search: { conditions: { ...conditions, statuses: [status] }, part },
  }))
}

function waitCounters({ conditions, part }: Search): readonly Counter[] {
  const { statuses = ['pending'], waits = WAITS, waitsForNone, waitsForKinds, ...others } = conditions
  if (!statuses.includes('pending') || waitsForKinds !== undefined) return []
  const wanted = waits.filter((wait) => waitsForNone?.includes(wait) !== true)
  return wanted.map((wait) => ({
    names: [wait],
    search: { conditions: { ...others, statuses: ['pending'], waits: [wait] }, part },
  }))
}

/** They differ in nothing but what is waited for, and one look at a run tells that of all. */
function together(counters: readonly Counter[]): Counter {
  const waits = counters.flatMap(({ search }) => search.conditions.waits ?? [])
  const [first] = counters
  if (first === undefined) throw new Error('There is nothing to count.')
  const { conditions, part } = first.search
  return { names: waits, search: { conditions: { ...conditions, waits }, part } }
}

/** An index that has nothing else: no more of it is looked at than is counted. */
function wayOfCount(context: SqlContext, { conditions, part }: Search): Way | undefined {
  const isOfAnyTime = part.createdFrom === undefined && part.createdBefore === undefined
  return waysOf(context, conditions).find((way) => way.rest.length === 0 && (way.isInOrder || isOfAnyTime))
}

async function countListed({ context, reader, upTo }: Counting, counters: readonly Counter[]): Promise<Tally> {
  const counts = counters.flatMap(({ names, search }) => {
    const way = wayOfCount(context, search)
    if (way === undefined) return []
    return way.walks.map((walk) => {
      const order = way.isInOrder ? inOrderOfIndex(context, walk) : sql``
      const found = sql`select 1 as one ${entriesIn(context, walk, search.part)} ${order} limit ${upTo}`
      return sql`select ${literal(names)} as status, count(*) as runs from (${found}) as found`
    })
  })
  if (counts.length === 0) return new Map()
  return tallyOf(await reader.read(compileQuery(context, sql.join(counts, sql` union all `))))
}

/** Stretch by stretch, until each of its numbers is as high as anybody wants to know. */
async function countThrough({ upTo, ...searcher }: Counting, { names, search }: Counter): Promise<Tally> {
  const tally = new Map(names.map((name) => [name, 0]))
  const ask = (stretch: Stretch) => ({ query: countOfStretch(searcher.context, stretch) })
  for await (const rows of answersOf({ ...searcher, search, ask })) {
    const found = tallyOf(rows)
    for (const name of names) tally.set(name, (tally.get(name) ?? 0) + (found.get(name) ?? 0))
    if ([...tally.values()].every((runs) => runs >= upTo)) break
  }
  return tally
}

function countOfStretch(context: SqlContext, stretch: Stretch): Sql {
  const kind = waitsFor(context)
  const counts = stretch.way.walks.map((walk) => {
    return sql`select r.status, ${kind} as kind, count(*) as runs ${runsIn(context, stretch, { walk })} group by r.status, ${kind}`
  })
  return sql.join(counts, sql` union all `)
}

function tallyOf(rows: Rows): Tally {
  const tally = new Map<string, number>()
  const add = (name: unknown, runs: unknown) => tally.set(String(name), (tally.get(String(name)) ?? 0) + Number(runs))
  for (const { status, kind, runs } of rows) {
    add(status, runs)
    if (status === 'pending' && WAITS.some((wait) => wait === kind)) add(kind, runs)
  }
  return tally
}
