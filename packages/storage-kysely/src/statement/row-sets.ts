import { sql } from 'kysely'
import { type ParameterName, parameterType, type Sql, type SqlContext, type SqlValue } from './statement'

/** One row of a parameter that is a JSON list; `n` says which of the things that are sent it belongs to. */
export type ListedRow = Readonly<Record<string, SqlValue>>

/** Such a parameter as a table `t` with these columns. */
export function rowsOf({ dialect }: SqlContext, json: Sql, names: readonly ParameterName[]): Sql {
  return dialect.recordsOf(
    json,
    names.map((name) => ({ name, type: parameterType(name) })),
  )
}

/** Reads a value of such a row. */
export function valueOf({ dialect }: SqlContext, alias: string): (name: ParameterName) => Sql {
  return (name) => {
    const column = sql.ref(`${alias}.${name}`)
    return parameterType(name) === 'json' ? dialect.toJson(column) : column
  }
}
