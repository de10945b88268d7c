import { type RawBuilder, sql } from 'kysely'
import { COLUMNS } from './columns'
import type { SqlDialect, SqlType } from './dialect'

type Sql = RawBuilder<unknown>

const TYPES: Readonly<Record<SqlType, Sql>> = {
  text: sql`text`,
  integer: sql`bigint`,
  ms: sql`double precision`,
  instant: sql`timestamptz`,
  json: sql`json`,
}

/** JSON stays text on its way. */
const RECORD_TYPES = {
  text: 'text',
  integer: 'bigint',
  ms: 'double precision',
  instant: 'timestamptz',
  json: 'text',
} as const satisfies Readonly<Record<SqlType, string>>

const UNLESS_LOCKED = sql`for update of r skip locked`

/** Instants have milliseconds, so that nothing is lost on the way through JavaScript; cut off, never rounded up. */
const NOW = sql`date_trunc('milliseconds', statement_timestamp())`

const plus = (instant: Sql, ms: Sql): Sql => sql`(${instant} + ${ms} * interval '1 millisecond')`

/** Text first: a driver that knows the parameter for JSON would encode the text once more. */
const asJson = (text: Sql): Sql => sql`cast(cast(${text} as text) as json)`

/** Many writers, typed columns. What is read is cast, because drivers and their settings disagree about the rest. */
export const postgres: SqlDialect = {
  name: 'postgres',
  hasOneWriter: false,
  hasWritingQueries: true,
  isServer: true,
  takesAnyTransaction: true,
  hasClockOfCaller: false,
  hasIndexOfParked: true,
  waitingParts: [sql`r.concurrency_key is null`, sql`r.concurrency_key is not null`],
  now: NOW,
  nowPlus: (ms) => plus(NOW, ms),
  plus,
  parameter: (value, type) => (type === 'json' ? asJson(value) : sql`cast(${value} as ${TYPES[type]})`),
  columns(table, alias) {
    const columns = Object.entries(COLUMNS[table]).map(([name, type]) => {
      const column = sql.ref(alias === undefined ? name : `${alias}.${name}`)
      return type === 'text' || type === 'integer' ? column : sql`${readAs(column, type)} as ${sql.ref(name)}`
    })
    return sql.join(columns)
  },
  read: readAs,
  toJson: asJson,
  listOf(json, type = 'text') {
    const texts = sql`json_array_elements_text(${asJson(json)})`
    return type === 'text' ? texts : sql`(select cast(value as ${TYPES[type]}) as value from ${texts}) as listed`
  },
  rowsOf: (json) => sql`json_array_elements(${asJson(json)})`,
  recordsOf(json, columns) {
    const typed = columns.map(({ name, type }) => sql`${sql.ref(name)} ${sql.raw(RECORD_TYPES[type])}`)
    return sql`json_to_recordset(${asJson(json)}) as t (n integer, ${sql.join(typed)})`
  },
  runsOf: (rows, runs, id) => sql`${rows} cross join lateral (
          select r.* from ${runs} as r where r.id = ${id} ${UNLESS_LOCKED} offset 0) as r`,
  withRun: (rows, runs, id) =>
    sql`${rows} cross join lateral (select r.* from ${runs} as r where r.id = ${id} offset 0) as r`,
  // Where one run has most of a table, all of it would seem nearer than a hundred ranges of an index.
  withEach: (rows, table, condition) =>
    sql`${rows} left join lateral (select e.* from ${table} as e where ${condition} offset 0) as e on true`,
  idsForEach: (rows, _runs, find) => sql`select h.id from ${rows} cross join lateral (${find(sql`r.id`)}) as h`,
  field: (row, index, type) => sql`cast(${row} ->> ${sql.lit(index)} as ${TYPES[type]})`,
  property: (json, name) => sql`(${json} ->> ${sql.lit(name)})`,
  propertyAt: (json, path, name) =>
    sql`(${json} #>> array[${sql.join(path.map((part) => sql.lit(part)))}, cast(${name} as text)])`,
  truth: (condition) => condition,
  nested: (json) => json,
  record: (properties) =>
    sql`json_build_object(${sql.join(Object.entries(properties).flatMap(([name, value]) => [sql.lit(name), value]))})`,
  objectOf: (key, value) => sql`coalesce(json_object_agg(${key}, ${value})::text, '{}')`,
  arrayOf: (value) => sql`json_agg(${value})::text`,
  isSame: (a, b) => sql`${a} is not distinct from ${b}`,
  isSameJson: (a, b) => sql`${a}::text is not distinct from ${b}::text`,
  least: (a, b) => sql`least(${a}, ${b})`,
  // Statistics lag behind a queue that fills: to the planner nothing waits, and any index on the status would do.
  waitingStatus: (column) => sql`(${column} || '')`,
  isAmong: (column, few) => sql`${column} = any(array(${few}))`,
  isOneOf: (column, json) => sql`${column} = any(array(select json_array_elements_text(${asJson(json)})))`,
  isNoneOf: (column, query) => sql`${column} <> all(array(${query}))`,
  updatedRun: 'r',
  locked: sql`for update`,
  unlessLocked: UNLESS_LOCKED,
  useIndex: () => sql``,
  takesIndexes: false,
  keptApart: sql`offset 0`,
  unseen: (value, type) => sql`(select cast(${value} as ${TYPES[type]}))`,
  writeOrder: (alias) => sql.ref(`${alias}.write_order`),
}

function readAs(value: Sql, type: 'instant' | 'json' | 'ms'): Sql {
  if (type === 'json') return sql`${value}::text`
  if (type === 'ms') return sql`${value}::double precision`
  return sql`to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}
