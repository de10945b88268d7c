import type { RawBuilder } from 'kysely'
import type { TableName } from './tables'

type Sql = RawBuilder<unknown>

/** What a value is to the database. `ms` is a number of milliseconds, which may have a fraction. */
export type SqlType = 'text' | 'integer' | 'ms' | 'instant' | 'json'

/** A property of the objects of a list, and what it is. */
export interface RecordColumn {
  readonly name: string
  readonly type: SqlType
}

/** Everything in which databases differ within a statement. Where whole statements differ, their files say so. */
export interface SqlDialect {
  /** For what there is one of for each database, such as the types of columns. What is to be done differently asks for a fact. */
  readonly name: 'sqlite' | 'postgres'
  /** A transaction that writes keeps all others from writing: no row has to be locked, and who waits here waits in order. */
  readonly hasOneWriter: boolean
  /** Many runs go into one statement, since the parts of a query may write. */
  readonly hasWritingQueries: boolean
  /** A program of its own, with settings, rights, sessions that it ends, and word for those who listen. */
  readonly isServer: boolean
  /** A transaction that is given may be of any library, not of Kysely alone. */
  readonly takesAnyTransaction: boolean
  /** Its time is that of the machine on which we are, and goes back when that is set back. */
  readonly hasClockOfCaller: boolean
  /** Parked runs have an index of their own, for which the status is enough. */
  readonly hasIndexOfParked: boolean
  /** The parts into which indexes divide the runs `r` that wait: one condition for each. */
  readonly waitingParts: readonly Sql[]
  /** The database's own time, the same within one statement. */
  readonly now: Sql
  /** Its own time plus so many milliseconds. */
  readonly nowPlus: (ms: Sql) => Sql
  /** An instant plus so many milliseconds. */
  readonly plus: (instant: Sql, ms: Sql) => Sql
  /** A bound value, with its type where the database cannot know it. */
  readonly parameter: (value: Sql, type: SqlType) => Sql
  /** The columns of a table as durably reads them: text, numbers and ISO instants, whatever the driver makes of others. */
  readonly columns: (table: TableName, alias?: string) => Sql
  /** One value as durably reads it. */
  readonly read: (value: Sql, type: 'instant' | 'json') => Sql
  /** Text that is JSON, to be stored as such. */
  readonly toJson: (text: Sql) => Sql
  /** Rows with one column `value` from a parameter that is a JSON list of texts or numbers. */
  readonly listOf: (json: Sql, type?: 'text' | 'integer') => Sql
  /** Rows with one column `value` from a parameter that is a JSON list of lists; `field` reads them. */
  readonly rowsOf: (json: Sql) => Sql
  /** A parameter that is a JSON list of objects as a table `t`: the number `n` of each, and these columns. */
  readonly recordsOf: (json: Sql, columns: readonly RecordColumn[]) => Sql
  /** The rows of `runs` as `r` that go with these rows: each looked up by its id, and passed over where somebody has locked it. */
  readonly runsOf: (rows: Sql, runs: Sql, id: Sql) => Sql
  /** The run `r` that goes with each of these rows: looked up by its id, once the rows are there. */
  readonly withRun: (rows: Sql, runs: Sql, id: Sql) => Sql
  /** The rows `e` of a table that go with each of these rows, or nothing: looked up for one after the other. */
  readonly withEach: (rows: Sql, table: Sql, condition: Sql) => Sql
  /** The ids of the runs that a query finds for each of these rows; `find` makes it for the column that it answers. */
  readonly idsForEach: (rows: Sql, runs: Sql, find: (column: Sql) => Sql) => Sql
  readonly field: (row: Sql, index: number, type: 'text' | 'integer') => Sql
  /** A text property of a JSON column. */
  readonly property: (json: Sql, name: string) => Sql
  /** A text property, by a name that anybody may have given, of an object in a JSON column. */
  readonly propertyAt: (json: Sql, path: readonly string[], name: Sql) => Sql
  /** A condition as a JSON value. */
  readonly truth: (condition: Sql) => Sql
  /** A JSON value among others. */
  readonly nested: (json: Sql) => Sql
  /** A JSON object with these properties, to be stored as such. */
  readonly record: (properties: Readonly<Record<string, Sql>>) => Sql
  readonly objectOf: (key: Sql, value: Sql) => Sql
  /** JSON text of the list of all values; `null` or an empty list without any. */
  readonly arrayOf: (value: Sql) => Sql
  readonly isSame: (a: Sql, b: Sql) => Sql
  readonly isSameJson: (a: Sql, b: Sql) => Sql
  readonly least: (a: Sql, b: Sql) => Sql
  /** The status of a run as the indexes of waiting runs know it, and no other index does. */
  readonly waitingStatus: (column: Sql) => Sql
  /** Whether a column has one of the few values that a query answers: looked up in an index, one after the other. */
  readonly isAmong: (column: Sql, few: Sql) => Sql
  /** Whether a column has one of the texts of a JSON list; never a reason to look it up in an index. */
  readonly isOneOf: (column: Sql, json: Sql) => Sql
  /** Whether a column has none of the texts of a query, which is made once. */
  readonly isNoneOf: (column: Sql, query: Sql) => Sql
  /** What `returning` calls the run `r` of an update that has a list beside it. */
  readonly updatedRun: 'r' | undefined
  /** Placed after a read: nobody else changes these rows before the transaction is over. */
  readonly locked: Sql
  /** Placed after a read: without the rows that somebody has locked, and would have to be waited for. */
  readonly unlessLocked: Sql
  /** Placed after a table, where the planner has no statistics and would take the longest index. */
  readonly useIndex: (index: string) => Sql
  /** Takes the index that is named. One that does not is left no other by the order that is asked for. */
  readonly takesIndexes: boolean
  /** Ends a query in brackets that is carried out as it stands, whatever is around it. */
  readonly keptApart: Sql
  /** A value of which the planner knows nothing: it might take rare ones for a reason to choose another way. */
  readonly unseen: (value: Sql, type: SqlType) => Sql
  /** Sorts rows in the order they were inserted. */
  readonly writeOrder: (alias: string) => Sql
}
