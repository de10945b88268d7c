import { type RawBuilder, sql } from 'kysely'
import { COLUMNS } from './columns'
import type { SqlDialect } from './dialect'

type Sql = RawBuilder<unknown>

const ISO = sql.lit('%Y-%m-%dT%H:%M:%fZ')

const plus = (instant: Sql, ms: Sql): Sql => sql`strftime(${ISO}, ${instant}, printf('%+.3f seconds', ${ms} / 1000.0))`

const property = (json: Sql, name: string): Sql => sql`json_extract(${json}, ${sql.lit(`$.${name}`)})`

/** One writer at a time, values without types, instants and JSON as text. */
export const sqlite: SqlDialect = {
  name: 'sqlite',
  hasOneWriter: true,
  hasWritingQueries: false,
  isServer: false,
  takesAnyTransaction: false,
  hasClockOfCaller: true,
  hasIndexOfParked: false,
  waitingParts: [sql`1`],
  now: sql`strftime(${ISO}, 'now')`,
  nowPlus: (ms) => plus(sql`'now'`, ms),
  plus,
  parameter: (value) => value,
  columns: (table, alias) =>
    sql.join(Object.keys(COLUMNS[table]).map((name) => sql.ref(alias === undefined ? name : `${alias}.${name}`))),
  read: (value) => value,
  toJson: (text) => text,
  listOf: (json) => sql`json_each(${json})`,
  rowsOf: (json) => sql`json_each(${json})`,
  recordsOf(json, columns) {
    const fields = ['n', ...columns.map(({ name }) => name)].map(
      (name) => sql`${property(sql`value`, name)} as ${sql.ref(name)}`,
    )
    return sql`(select ${sql.join(fields)} from json_each(${json})) as t`
  },
  runsOf: (rows, runs) => sql`${rows} cross join ${runs} as r`,
  withRun: (rows, runs) => sql`${rows} cross join ${runs} as r`,
  withEach: (rows, table, condition) => sql`${rows} left join ${table} as e on ${condition}`,
  idsForEach: (rows, runs, find) =>
    sql`select h.id from ${rows} cross join ${runs} as h where h.rowid in (${find(sql`r.rowid`)})`,
  field: (row, index) => sql`json_extract(${row}, ${sql.lit(`$[${index}]`)})`,
  property,
  propertyAt: (json, path, name) =>
    sql`(select e.value from json_each(${json}, ${sql.lit(`$.${path.join('.')}`)}) as e where e.key = ${name})`,
  truth: (condition) => sql`json(case when ${condition} then 'true' else 'false' end)`,
  nested: (json) => sql`json(${json})`,
  record: (properties) =>
    sql`json_object(${sql.join(Object.entries(properties).flatMap(([name, value]) => [sql.lit(name), value]))})`,
  objectOf: (key, value) => sql`json_group_object(${key}, ${value})`,
  arrayOf: (value) => sql`json_group_array(${value})`,
  isSame: (a, b) => sql`${a} is ${b}`,
  isSameJson: (a, b) => sql`${a} is ${b}`,
  least: (a, b) => sql`min(${a}, ${b})`,
  waitingStatus: (column) => column,
  isAmong: (column, few) => sql`${column} in (${few})`,
  isOneOf: (column, json) => sql`+${column} in (select value from json_each(${json}))`,
  isNoneOf: (column, query) => sql`+${column} not in (${query})`,
  // It answers of the run alone, and knows no alias there.
  updatedRun: undefined,
  locked: sql``,
  unlessLocked: sql``,
  useIndex: (index) => sql`indexed by ${sql.ref(index)}`,
  takesIndexes: true,
  keptApart: sql``,
  unseen: (value) => value,
  writeOrder: (alias) => sql.ref(`${alias}.rowid`),
}
