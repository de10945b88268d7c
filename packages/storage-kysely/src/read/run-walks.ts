import type { RunCursor } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Sql, SqlContext } from '../statement'

/** Where in the list something stands. */
export type Place = readonly [createdAt: Sql, id: Sql]

/** What an index begins with, and what it is to be. */
export interface Key {
  readonly column: Sql
  readonly value: Sql
}

/** Entries of one index: with these keys, and within them in the order of places where it has them so. */
export interface Walk {
  readonly entries: Sql
  readonly keys: readonly Key[]
  readonly conditions: readonly Sql[]
  readonly place: Place
  /** Where it has no ids, the entries of one instant are in no order. */
  readonly hasIds: boolean
  /** Whose they are, where they are not the runs themselves. */
  readonly runId?: Sql
}

/** A part of the list of all runs, newest first. */
export interface Part {
  readonly createdFrom?: string
  readonly createdBefore?: string
  /** Behind this place … */
  readonly after?: RunCursor
  /** … and up to this one. */
  readonly until?: RunCursor
}

/** Where there is no id: all of an instant. */
type Bound = Pick<RunCursor, 'createdAt'> & Partial<RunCursor>

/** For whoever reads the first entries: no other index has them in this order. */
export function walkConditions(context: SqlContext, walk: Walk, part: Part): readonly Sql[] {
  if (context.dialect.takesIndexes) return plainConditions(context, walk, part)
  return [...walk.conditions, ...isBetweenKeys(context, { ...walk, bounds: boundsOf(part) })]
}

/** For whoever reads them all: the planner may choose how. */
export function plainConditions(context: SqlContext, walk: Walk, part: Part): readonly Sql[] {
  return [...walk.conditions, ...isAtKeys(context, { ...walk, bounds: boundsOf(part) })]
}

interface Range {
  readonly keys: readonly Key[]
  readonly place: Place
  readonly bounds: Bounds
}

interface Bounds {
  readonly newest: Bound | null
  readonly oldest: Bound | null
}

/** Of two the narrower one: a database that is given both may begin at the other. */
function boundsOf({ createdFrom, createdBefore, after, until }: Part): Bounds {
  const from = createdFrom === undefined ? null : { createdAt: createdFrom }
  const before = createdBefore === undefined ? null : { createdAt: createdBefore }
  const isBefore = before !== null && after !== undefined && before.createdAt <= after.createdAt
  return { newest: isBefore ? before : (after ?? before), oldest: until ?? from }
}

function isAtKeys(context: SqlContext, { keys, place, bounds: { newest, oldest } }: Range): readonly Sql[] {
  return [
    ...keys.map(isAtKey),
    ...(newest === null ? [] : [sql`${row(columnsOf(place, newest))} < ${row(valuesOf(context, newest))}`]),
    ...(oldest === null ? [] : [sql`${row(columnsOf(place, oldest))} >= ${row(valuesOf(context, oldest))}`]),
  ]
}

/**
 * The last key and the place as one row. If that key equalled something as well, it would say nothing about the order, and then
 * other indexes had the entries in this order, among all those that are something else.
 */
function isBetweenKeys(context: SqlContext, { keys, place, bounds: { newest, oldest } }: Range): readonly Sql[] {
  const last = keys.slice(-1)
  const columns = last.map(({ column }) => column)
  const values = last.map(({ value }) => context.dialect.unseen(value, 'text'))
  const isPast = (bound: Bound, operator: Sql) =>
    sql`${row([...columns, ...columnsOf(place, bound)])} ${operator} ${row([...values, ...valuesOf(context, bound)])}`
  return [
    ...keys.slice(0, -1).map(isAtKey),
    ...(newest === null && keys.length === 0 ? [] : [isPast(newest ?? { createdAt: 'infinity' }, sql`<`)]),
    ...(oldest === null && keys.length === 0 ? [] : [isPast(oldest ?? { createdAt: '-infinity' }, sql`>=`)]),
  ]
}

function isAtKey({ column, value }: Key): Sql {
  return sql`${column} = ${value}`
}

function columnsOf([createdAt, id]: Place, bound: Bound): readonly Sql[] {
  return bound.id === undefined ? [createdAt] : [createdAt, id]
}

/** Instants have no more than the milliseconds that the text shows, so that a place is exact. */
function valuesOf({ dialect }: SqlContext, { createdAt, id }: Bound): readonly Sql[] {
  const at = dialect.unseen(dialect.parameter(sql`${createdAt}`, 'instant'), 'instant')
  return id === undefined ? [at] : [at, dialect.unseen(sql`${id}`, 'text')]
}

function row(parts: readonly Sql[]): Sql {
  return sql`(${sql.join(parts)})`
}

export function newestFirst(context: SqlContext, { keys, place }: Walk): Sql {
  return orderBy([...orderingKeys(context, keys), ...place])
}

/** Newest first, as far as the index goes. */
export function inOrderOfIndex(context: SqlContext, { keys, place, hasIds }: Walk): Sql {
  return orderBy([...orderingKeys(context, keys), ...(hasIds ? place : place.slice(0, 1))])
}

function orderingKeys({ dialect }: SqlContext, keys: readonly Key[]): readonly Sql[] {
  return dialect.takesIndexes ? [] : keys.slice(-1).map(({ column }) => column)
}

function orderBy(columns: readonly Sql[]): Sql {
  return sql`order by ${sql.join(columns.map((column) => sql`${column} desc`))}`
}

/** The first ones in the order of the index; of an instant all or none. */
export function firstOfWalk(context: SqlContext, walk: Walk, count: Sql): Sql {
  const order = inOrderOfIndex(context, walk)
  return walk.hasIds ? sql`${order} limit ${count}` : sql`${order} fetch first (${count}) rows with ties`
}
