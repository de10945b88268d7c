import { type Client, createClient, type InStatement } from '@libsql/client'
import SqliteDatabase from 'better-sqlite3'
import { type Dialect, SqliteDialect } from 'kysely'
import { afterEachTest } from '../../../../test/leftovers'
import { betterSqlite3 } from '../../src/better-sqlite3'
import { libsql } from '../../src/libsql'

/** Below every layer of durably: each call of the driver as the statements that it carried. */
export interface DriverLog {
  readonly dialect: Dialect
  /** What was sent since this was asked last. */
  take(): readonly DriverCall[]
}

export type DriverCall = readonly string[]

/** Each opens a file with a driver that tells of everything that is sent to it. */
export const LOGGED_DIALECTS = {
  'betterSqlite3()': (file: string) => logged((calls) => betterSqlite3({ database: loggedDatabase(file, calls) })),
  'libsql()': (file: string) => logged((calls) => libsql({ client: loggedClient(file, calls) })),
  'a bare dialect': (file: string) => logged((calls) => new SqliteDialect({ database: bareDatabase(file, calls) })),
} as const

function logged(open: (calls: DriverCall[]) => Dialect): DriverLog {
  const calls: DriverCall[] = []
  return { dialect: open(calls), take: () => calls.splice(0) }
}

/** `verbose` hears each statement as it is executed, those of the driver's own transactions included. */
function loggedDatabase(file: string, calls: DriverCall[]): SqliteDatabase.Database {
  return new SqliteDatabase(file, { timeout: 20, verbose: (statement) => void calls.push([String(statement)]) })
}

function bareDatabase(file: string, calls: DriverCall[]): SqliteDatabase.Database {
  const database = loggedDatabase(file, calls)
  database.pragma('journal_mode = wal')
  return database
}

const clients: Client[] = []

afterEachTest(() => {
  for (const client of clients.splice(0)) client.close()
})

function loggedClient(file: string, calls: DriverCall[]): Client {
  const client = createClient({ url: `file:${file}`, concurrency: 1 })
  clients.push(client)
  const textOf = (statement: InStatement | readonly [string, unknown?]) =>
    typeof statement === 'string' ? statement : 'sql' in statement ? statement.sql : statement[0]
  const execute = client.execute.bind(client) as (statement: InStatement) => ReturnType<Client['execute']>
  const batch = client.batch.bind(client)
  return Object.assign(client, {
    execute(statement: InStatement) {
      calls.push([textOf(statement)])
      return execute(statement)
    },
    batch(...[statements, mode]: Parameters<Client['batch']>) {
      calls.push(statements.map(textOf))
      return batch(statements, mode)
    },
    transaction: () => Promise.reject(new Error('libsql() sends everything as one batch')),
  })
}

/** The statements of each transaction. One outside of BEGIN … COMMIT is a transaction of its own, as is a batch. */
export function transactionsOf(calls: readonly DriverCall[]): readonly DriverCall[] {
  const transactions: string[][] = []
  let open: string[] | null = null
  for (const call of calls) {
    const [first = ''] = call
    if (/^begin/i.test(first)) open = []
    else if (/^commit/i.test(first)) {
      transactions.push(open ?? [])
      open = null
    } else if (open === null) transactions.push([...call])
    else open.push(...call)
  }
  return transactions
}
