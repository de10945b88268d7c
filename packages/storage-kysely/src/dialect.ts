import { type RawBuilder, sql } from 'kysely'

type Sql = RawBuilder<unknown>

/** Everything in which databases differ. Nothing else in this package may know which one it talks to. */
export interface SqlDialect {
  /** The database's own time, the same within one statement. */
  readonly now: Sql
  /** Its own time plus so many milliseconds. */
  readonly nowPlus: (ms: Sql) => Sql
  /** An instant plus so many milliseconds. */
  readonly plus: (instant: Sql, ms: Sql) => Sql
  /** Rows with one column `value` from a parameter that is a JSON list of texts. */
  readonly listOf: (json: Sql) => Sql
  /** Rows with one column `value` from a parameter that is a JSON list of lists; `field` reads them. */
  readonly rowsOf: (json: Sql) => Sql
  readonly field: (row: Sql, index: number) => Sql
  /** A text property of a JSON column. */
  readonly property: (json: Sql, name: string) => Sql
  readonly objectOf: (key: Sql, value: Sql) => Sql
  readonly isSame: (a: Sql, b: Sql) => Sql
  readonly least: (a: Sql, b: Sql) => Sql
  /** The same value, which the planner does not look up in an index. */
  readonly unindexed: (column: Sql) => Sql
  /** Placed after a table: the planner has no statistics and would take the longest index. */
  readonly useIndex: (index: string) => Sql
  /** `null` without looking for the value when the statement before changed no row. */
  readonly unlessLastFoundNone: (value: Sql) => Sql
  /** Sorts rows in the order they were inserted. */
  readonly writeOrder: (alias: string) => Sql
}

const ISO = sql.lit('%Y-%m-%dT%H:%M:%fZ')

const plus = (instant: Sql, ms: Sql): Sql => sql`strftime(${ISO}, ${instant}, printf('%+.3f seconds', ${ms} / 1000.0))`

export const sqlite: SqlDialect = {
  now: sql`strftime(${ISO}, 'now')`,
  nowPlus: (ms) => plus(sql`'now'`, ms),
  plus,
  listOf: (json) => sql`json_each(${json})`,
  rowsOf: (json) => sql`json_each(${json})`,
  field: (row, index) => sql`json_extract(${row}, ${sql.lit(`$[${index}]`)})`,
  property: (json, name) => sql`json_extract(${json}, ${sql.lit(`$.${name}`)})`,
  objectOf: (key, value) => sql`json_group_object(${key}, ${value})`,
  isSame: (a, b) => sql`${a} is ${b}`,
  least: (a, b) => sql`min(${a}, ${b})`,
  unindexed: (column) => sql`+${column}`,
  useIndex: (index) => sql`indexed by ${sql.ref(index)}`,
  unlessLastFoundNone: (value) => sql`case when changes() > 0 then ${value} end`,
  writeOrder: (alias) => sql.ref(`${alias}.rowid`),
}
