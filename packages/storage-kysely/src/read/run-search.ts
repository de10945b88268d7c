import type { RunCursor, RunQuery } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Rows } from '../dialect'
import { compileQuery, type Row, type Sql, type SqlContext } from '../statement'
import type { Reader } from './reader'
import { type Conditions, conditionsIn, where } from './run-conditions'
import { firstOfWalk, inOrderOfIndex, type Part, plainConditions, type Walk, walkConditions } from './run-walks'
import { type Way, waysOf } from './run-ways'

/** How many entries of an index one statement looks at: with all that is asked of each run it takes a few milliseconds. */
export const STRETCH = 1000

/** Which runs are looked for, and in which part of the list. */
export interface Search {
  readonly conditions: Conditions
  readonly part: Part
}

/** A part of the list through which one statement looks, on this way. */
export interface Stretch {
  readonly way: Way
  readonly part: Part
  /** Where nobody asked how far it goes: to the end, however many entries that are. */
  readonly isUnmeasured?: boolean
}

export function searchOf(query: RunQuery): Search {
  const { createdFrom, createdBefore, cursor } = query
  const part = {
    ...(createdFrom !== undefined && { createdFrom }),
    ...(createdBefore !== undefined && { createdBefore }),
    ...(cursor !== undefined && { after: cursor }),
  }
  return { conditions: conditionsIn(query), part }
}

/** What is sent for each stretch, and in which order its rows are once they are `found`. */
export interface Question {
  readonly query: Sql
  readonly order?: Sql
}

/** Where a search is sent, and with what. */
export interface Searcher {
  readonly context: SqlContext
  readonly reader: Reader
}

interface Looking extends Searcher {
  readonly search: Search
  ask(stretch: Stretch): Question
}

/**
 * No database can be trusted to know which of several conditions is rare, and none has an index for each mixture of them. So
 * each index is asked how far it comes within a stretch, and the one that comes furthest is walked, until the list ends.
 */
export async function* answersOf({ search, ask, ...searcher }: Looking): AsyncGenerator<Rows> {
  const ways = waysOf(searcher.context, search.conditions)
  let { part } = search
  for (;;) {
    const stretch = await stretchOf(searcher, ways, part)
    const rows = await readStretch(searcher, stretch, ask(stretch))
    if (rows === null) continue
    yield rows
    const { until } = stretch.part
    if (until === undefined) return
    part = { ...part, after: until }
  }
}

export function firstStretch(searcher: Searcher, { conditions, part }: Search): Promise<Stretch> {
  return stretchOf(searcher, waysOf(searcher.context, conditions), part)
}

async function stretchOf({ context, reader }: Searcher, ways: readonly Way[], part: Part): Promise<Stretch> {
  const probes = probesOf(context, ways, part)
  const reached =
    probes.length === 0 ? [] : await reader.read(compileQuery(context, sql.join(probes, sql` union all `)))
  const { way, until } = furthestOf(ways, reached)
  return { way, part: until === null ? part : { ...part, until } }
}

/** `null`: more has come into it since it was measured than a statement reads, and it is to be measured anew. */
export async function readStretch(
  { context, reader }: Searcher,
  stretch: Stretch,
  { query, order = sql`` }: Question,
): Promise<Rows | null> {
  if (!hasMost(context, stretch)) return reader.read(compileQuery(context, query))
  const rows = await reader.read(
    compileQuery(
      context,
      sql`select part.has_more, found.* from (select ${hasMore(context, stretch)} as has_more) as part
        left join (select 1 as is_found, found.* from (${query}) as found) as found on true ${order}`,
    ),
  )
  if (rows.some((row) => Number(row['has_more']) === 1)) return null
  return rows.filter((row) => row['is_found'] !== null)
}

/** Each answers nothing where there are no more entries than belong to a stretch. */
function probesOf(context: SqlContext, ways: readonly Way[], part: Part): readonly Sql[] {
  return ways.flatMap((way, number) => {
    const probes = way.isInOrder ? placesOf(context, way, part) : sizeOf(context, way)
    return probes.map((probe) => sql`select * from (select ${sql.lit(number)} as way, ${probe}) as reached`)
  })
}

/** Where a stretch ends. Several walks share it: none of them goes further than its part. */
function placesOf(context: SqlContext, { walks }: Way, part: Part): readonly Sql[] {
  const share = Math.max(Math.floor(context.stretch / walks.length), 1)
  return walks.map((walk) => {
    const [createdAt, id] = walk.place
    const lastId = walk.hasIds ? id : sql`cast('' as text)`
    return sql`${context.dialect.read(createdAt, 'instant')} as created_at, ${lastId} as id from ${walk.entries}
      ${where(walkConditions(context, walk, part))}
      ${inOrderOfIndex(context, walk)} limit 1 offset ${sql.lit(share - 1)}`
  })
}

function sizeOf({ stretch }: SqlContext, { size }: Way): readonly Sql[] {
  if (size === null) return []
  return [sql`cast(null as text) as created_at, cast(null as text) as id ${size} limit 1 offset ${sql.lit(stretch)}`]
}

interface Furthest {
  readonly way: Way
  /** `null`: to the end. */
  readonly until: RunCursor | null
}

function furthestOf(ways: readonly Way[], reached: readonly Row[]): Furthest {
  let furthest: Furthest | undefined
  for (const [number, way] of ways.entries()) {
    const places = reached.filter((row) => Number(row['way']) === number).map(toPlace)
    const [first, ...others] = places
    if (first === undefined) return { way, until: null }
    const until = others.reduce((newest, place) => (isBehind(newest, place) ? place : newest), first)
    if (way.isInOrder && (!furthest?.until || isBehind(until, furthest.until))) furthest = { way, until }
  }
  if (furthest === undefined) throw new Error('No way leads to the runs.')
  return furthest
}

function toPlace(row: Row): RunCursor {
  return { createdAt: String(row['created_at']), id: String(row['id']) }
}

function isBehind(a: RunCursor, b: RunCursor): boolean {
  return a.createdAt === b.createdAt ? a.id < b.id : a.createdAt < b.createdAt
}

/** What is read of a walk: so many of the first runs, or all. */
export interface Reading {
  readonly walk: Walk
  readonly limit?: number | undefined
}

/** The runs `r` of a stretch that one of its walks has: `from … where …`. */
export function runsIn(context: SqlContext, stretch: Stretch, { walk, limit }: Reading): Sql {
  const { entries, runId, hasIds } = walk
  const { way, part, isUnmeasured = false } = stretch
  const own = (isUnmeasured ? plainConditions : walkConditions)(context, walk, part)
  const apart = (end: Sql) => {
    const walked = sql`(select * from ${entries} ${where(own)} ${end}) as ${sql.ref(runId === undefined ? 'r' : 'q')}`
    return sql`from ${withRuns(context, walked, runId)} ${where([...isItsRun(runId), ...way.rest])}`
  }
  const isPage = limit !== undefined || isUnmeasured
  if (way.rest.length > 0 || !isPage) return apart(walkedAlone(context, stretch, walk))
  if (!context.dialect.takesIndexes && !hasIds && !isUnmeasured) return apart(firstOfWalk(context, walk, sql`${limit}`))
  return sql`from ${withRuns(context, entries, runId)} ${where([...own, ...isItsRun(runId)])}`
}

/** What a walk has, where nothing is asked of the runs themselves. */
export function entriesIn(context: SqlContext, walk: Walk, part: Part): Sql {
  return sql`from ${walk.entries} ${where(walkConditions(context, walk, part))}`
}

/** What has come into a stretch since it was measured, a moment ago, is seldom more than was there. */
const ROOM = 2

function mostOf({ stretch }: SqlContext): number {
  return ROOM * stretch
}

/** Without a limit the planner would find another index, or sort them all. */
function hasMost({ dialect }: SqlContext, { way, isUnmeasured = false }: Stretch): boolean {
  return !dialect.takesIndexes && way.isInOrder && !isUnmeasured
}

/** Whether any of its walks has entries behind those that are read: asked in the same statement, of the same moment. */
function hasMore(context: SqlContext, { way, part }: Stretch): Sql {
  const walks = way.walks.map((walk) => {
    const place = sql`rank() over (${inOrderOfIndex(context, walk)}) as place`
    const entries = sql`select ${place} ${entriesIn(context, walk, part)}`
    return sql`exists (select 1 from (${entries}) as entries where entries.place > ${sql.lit(mostOf(context))})`
  })
  return sql`case when ${sql.join(walks, sql` or `)} then 1 else 0 end`
}

/** A database that saw all conditions at once might choose another way. */
function walkedAlone(context: SqlContext, stretch: Stretch, walk: Walk): Sql {
  if (!hasMost(context, stretch)) return context.dialect.keptApart
  return firstOfWalk(context, walk, sql.lit(mostOf(context)))
}

function withRuns({ tables, dialect }: SqlContext, entries: Sql, runId: Sql | undefined): Sql {
  return runId === undefined ? entries : dialect.withRun(entries, tables.runs, runId)
}

function isItsRun(runId: Sql | undefined): readonly Sql[] {
  return runId === undefined ? [] : [sql`r.id = ${runId}`]
}
