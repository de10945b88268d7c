import { sql } from 'kysely'
import { list, type ParameterName, parameterType, type Sql, type SqlContext, type SqlValue } from './statement'

/** One row of a parameter that is a JSON list; `n` says which of the things that are sent it belongs to. */
export type ListedRow = Readonly<Record<string, SqlValue>>

const TYPES = { text: 'text', integer: 'bigint', ms: 'double precision', instant: 'timestamptz', json: 'text' } as const

/** Such a parameter as a table `t` with these columns. */
export function rowsOf({ dialect }: SqlContext, json: Sql, names: readonly ParameterName[]): Sql {
  if (dialect.name === 'sqlite') {
    const fields = ['n', ...names].map((name) => sql`${dialect.property(sql`value`, name)} as ${sql.ref(name)}`)
    return sql`(select ${list(...fields)} from json_each(${json})) as t`
  }
  const columns = names.map((name) => sql`${sql.ref(name)} ${sql.raw(TYPES[parameterType(name)])}`)
  return sql`json_to_recordset(${dialect.toJson(json)}) as t (n integer, ${list(...columns)})`
}

/** Reads a value of such a row. */
export function valueOf({ dialect }: SqlContext, alias: string): (name: ParameterName) => Sql {
  return (name) => {
    const column = sql.ref(`${alias}.${name}`)
    return parameterType(name) === 'json' ? dialect.toJson(column) : column
  }
}
