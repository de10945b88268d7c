import { sql } from 'kysely'
import type { Rows, TableName } from '../dialect'
import { and, compileQuery, list, type Row, type Sql, type SqlContext } from '../statement'
import type { Reader } from './reader'
import { inTurns } from './turns'

/** What the rows are listed by. */
export interface PlaceColumn {
  readonly name: string
  readonly type: 'instant' | 'text'
}

/** The rows `m` of a table, in the order of one of its indexes. */
export interface Listing {
  readonly table: TableName
  readonly index: string
  readonly place: readonly [PlaceColumn, PlaceColumn]
  readonly isNewestFirst?: boolean
  /** For which the index has the rows one after the other. */
  readonly within?: readonly Sql[]
  /** By what is within, the first column of the place has one value. */
  readonly hasOneFirst?: boolean
  /** What is yet to be looked at, row by row. */
  readonly conditions: readonly Sql[]
}

/** Where it is read. */
export interface Lister {
  readonly context: SqlContext
  readonly reader: Reader
  readonly listing: Listing
}

type Place = readonly [string, string]

export interface Page {
  readonly after?: Place | undefined
  readonly limit?: number | undefined
}

/** A part of the index through which one statement looks; without an end it is the last. */
interface Stretch {
  readonly after: Place | undefined
  readonly until?: Place
}

/** Where an index has nothing but what is asked for, a page is one statement; else it goes through the index in stretches. */
export async function readListing(lister: Lister, page: Page): Promise<Rows> {
  const { context, reader, listing } = lister
  const { limit = Number.POSITIVE_INFINITY, after } = page
  const columns = context.dialect.columns(listing.table, 'm')
  const readRows = (from: Sql, count: number) => {
    const end = Number.isFinite(count) ? sql`limit ${count}` : sql``
    return compileQuery(context, sql`select ${columns} ${from} order by ${order(listing)} ${end}`)
  }
  if (listing.conditions.length === 0) return reader.read(readRows(entriesIn(context, listing, { after }), limit))
  const found: Row[] = []
  for await (const [stretch, turned] of stretchesOf(lister, after)) {
    found.push(...(await turned.read(readRows(rowsIn(context, listing, stretch), limit - found.length))))
    if (found.length >= limit) break
  }
  return found
}

/** Sums of the rows, added up stretch by stretch: they are not of one moment. */
export async function sumListing(
  lister: Lister,
  sums: Readonly<Record<string, Sql>>,
): Promise<ReadonlyMap<string, number>> {
  const { context, listing } = lister
  const totals = new Map(Object.keys(sums).map((name) => [name, 0]))
  const columns = Object.entries(sums).map(([name, sum]) => sql`${sum} as ${sql.ref(name)}`)
  for await (const [stretch, turned] of stretchesOf(lister, undefined)) {
    const rows = sql`select ${list(...columns)} ${rowsIn(context, listing, stretch)}`
    const [row = {}] = await turned.read(compileQuery(context, rows))
    for (const [name, total] of totals) totals.set(name, total + Number(row[name]))
  }
  return totals
}

/** The end of the list as it is now. */
export async function lastPlace({ context, reader, listing }: Lister): Promise<Place | undefined> {
  const { isNewestFirst = false } = listing
  const fromTheEnd = order({ ...listing, isNewestFirst: !isNewestFirst })
  const last = sql`select ${placeColumns(context, listing)} from ${entriesOf(context, listing)}
    ${where(listing.within ?? [])} order by ${fromTheEnd} limit 1`
  return (await reader.read(compileQuery(context, last))).map(toPlace)[0]
}

interface EntriesPart {
  readonly after: Place | undefined
  readonly until: Place
  /** So many are looked at. */
  readonly limit: number
  /** What is read beside their places. */
  readonly columns: Sql
}

/** Those that meet the conditions, and the last one that was looked at; none where all have been. */
export async function readEntries(
  { context, reader, listing }: Lister,
  { after, until, limit, columns }: EntriesPart,
): Promise<{ readonly found: Rows; readonly last: Place | undefined }> {
  const isFound = listing.conditions.length === 0 ? sql`true` : and(...listing.conditions)
  const entries = sql`select ${placeColumns(context, listing)}, ${columns}, case when ${isFound} then 1 else 0 end as is_found
    from ${entriesOf(context, listing)} ${where(rangeOf(context, listing, { after, until }))}
    order by ${order(listing)} limit ${limit}`
  const rows = await reader.read(compileQuery(context, entries))
  const last = rows.length < limit ? undefined : rows.at(-1)
  return { found: rows.filter((row) => Boolean(row['is_found'])), last: last === undefined ? undefined : toPlace(last) }
}

async function* stretchesOf({ context, reader, listing }: Lister, from: Place | undefined) {
  const turned = inTurns(reader)
  for (let after = from; ; ) {
    const [end] = await turned.read(compileQuery(context, endOf(context, listing, after)))
    const until = end === undefined ? undefined : toPlace(end)
    const stretch: Stretch = until === undefined ? { after } : { after, until }
    yield [stretch, turned] as const
    if (until === undefined) return
    after = until
  }
}

/** Where so many entries of the index end. */
function endOf(context: SqlContext, listing: Listing, after: Place | undefined): Sql {
  return sql`select ${placeColumns(context, listing)} from ${entriesOf(context, listing)}
    ${where(rangeOf(context, listing, { after }))} order by ${order(listing)} limit 1 offset ${sql.lit(context.stretch - 1)}`
}

function placeColumns({ dialect }: SqlContext, { place }: Listing): Sql {
  const [first, second] = place.map(({ name, type }) => {
    const column = sql.ref(`m.${name}`)
    return type === 'text' ? column : dialect.read(column, type)
  })
  return sql`${first} as first, ${second} as second`
}

function toPlace(row: Row): Place {
  return [String(row['first']), String(row['second'])]
}

/** Far more than can have come into a stretch since it was measured, a moment ago. */
const ROOM = 10

/** The entries of a stretch are read as they stand in the index, whatever other one might have what is asked of them. */
function rowsIn(context: SqlContext, listing: Listing, stretch: Stretch): Sql {
  const entries = entriesIn(context, listing, stretch)
  const { takesIndexes } = context.dialect
  if (takesIndexes && listing.conditions.length === 0) return entries
  // A planner that is told of no index knows nothing of two columns together: without a limit it would sort all there are.
  const inOrder = takesIndexes ? sql`` : sql`order by ${order(listing)} limit ${sql.lit(ROOM * context.stretch)}`
  return sql`from (select m.* ${entries} ${inOrder}) as m ${where(listing.conditions)}`
}

function entriesIn(context: SqlContext, listing: Listing, stretch: Stretch): Sql {
  return sql`from ${entriesOf(context, listing)} ${where(rangeOf(context, listing, stretch))}`
}

function entriesOf({ tables, dialect, prefix }: SqlContext, { table, index }: Listing): Sql {
  return sql`${tables[table]} as m ${dialect.useIndex(`${prefix}${index}`)}`
}

function rangeOf({ dialect }: SqlContext, listing: Listing, { after, until }: Stretch) {
  const { place, within = [], hasOneFirst = false, isNewestFirst } = listing
  // Beside one value of the first column Postgres would not end at a place of both, but where that value ends.
  const first = hasOneFirst ? 1 : 0
  const columns = sql`(${list(...place.slice(first).map(({ name }) => sql.ref(`m.${name}`)))})`
  const valueAt = (values: Place) => (column: PlaceColumn, index: number) =>
    dialect.parameter(sql`${values[first + index]}`, column.type)
  const at = (values: Place) => sql`(${list(...place.slice(first).map(valueAt(values)))})`
  const [behind, upTo] = isNewestFirst ? [sql`<`, sql`>=`] : [sql`>`, sql`<=`]
  return [
    ...within,
    ...(after === undefined ? [] : [sql`${columns} ${behind} ${at(after)}`]),
    ...(until === undefined ? [] : [sql`${columns} ${upTo} ${at(until)}`]),
  ]
}

function order({ place, isNewestFirst }: Listing): Sql {
  const direction = isNewestFirst ? sql`desc` : sql`asc`
  return list(...place.map(({ name }) => sql`${sql.ref(`m.${name}`)} ${direction}`))
}

function where(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql`` : sql`where ${and(...conditions)}`
}
