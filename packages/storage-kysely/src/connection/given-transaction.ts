import { InvalidOptionError } from '@coji/durably-core'
import type { CompiledQuery, Kysely, Transaction } from 'kysely'
import type { Rows, SqlDialect } from '../dialect'
import { plainIntegers } from './integers'

/**
 * A transaction that another library began on the database of durably. A client of `pg` after its `begin` is one as it
 * is; of others it takes a line to make one: one object for one transaction, which is how durably knows it.
 *
 * ```ts
 * await sql.begin((tx) => job.trigger(payload, { transaction: { query: (text, params) => tx.unsafe(text, params) } }))
 * ```
 */
export interface SqlTransaction {
  /** Sends one statement with `$1`, `$2` and so on for its values. Answers its rows, or an object that has them as `rows`. */
  query(sql: string, params: (string | number | null)[]): PromiseLike<unknown>
}

/** How statements get into an open transaction of the application, whoever began it. */
export interface GivenTransaction {
  send(query: CompiledQuery): Promise<Rows>
  /** What durably knows the transaction by: all that Kysely makes of one has its connection in common. */
  connection(): Promise<object>
}

export function givenTransaction(
  given: object,
  { takesAnyTransaction }: Pick<SqlDialect, 'takesAnyTransaction'>,
): GivenTransaction {
  if (isKysely(given)) {
    if (given.isTransaction) return ofKysely(given as Transaction<unknown>)
    throw new InvalidOptionError(
      'transaction is an instance of Kysely on which no transaction is open: begin one, and give the trx.',
    )
  }
  if (!takesAnyTransaction) {
    throw new InvalidOptionError(
      "On SQLite transaction must be Kysely's trx: what durably.transaction(async (trx) => …) calls its function with.",
    )
  }
  if (typeof (given as Partial<SqlTransaction>).query === 'function') return ofQuery(given as SqlTransaction)
  throw new InvalidOptionError(
    "transaction is neither Kysely's trx nor has it a function query(sql, params), as a client of pg has. " +
      'For other libraries write one: see docs/transactions.md.',
  )
}

function isKysely(given: object): given is Kysely<unknown> {
  return typeof (given as Partial<Kysely<unknown>>).getExecutor === 'function'
}

/** The statements of durably inside a transaction of Kysely, whose plugins must not see them. */
export function ofKysely(trx: Transaction<unknown>): GivenTransaction {
  const plain: Kysely<unknown> = trx.withoutPlugins()
  return {
    send: async (query) => plainIntegers((await plain.executeQuery<Rows[number]>(query)).rows),
    // `withSchema()` and the like make another object of the same transaction.
    connection: () => trx.getExecutor().provideConnection(async (own) => own),
  }
}

function ofQuery(given: SqlTransaction): GivenTransaction {
  return {
    async send({ sql, parameters }) {
      try {
        return plainIntegers(rowsIn(await given.query(sql, [...parameters] as (string | number | null)[])))
      } catch (error) {
        throw explained(error)
      }
    },
    connection: async () => given,
  }
}

function rowsIn(answer: unknown): Rows {
  const rows = Array.isArray(answer) ? answer : Object(answer).rows
  if (Array.isArray(rows)) return rows
  throw new InvalidOptionError(
    'The function query(sql, params) of transaction must answer the rows, or an object that has them as rows.',
  )
}

/** What Postgres says of a savepoint outside of a transaction. */
const NO_TRANSACTION = /can only be used in transaction blocks/

function explained(error: unknown): unknown {
  if (!NO_TRANSACTION.test(error instanceof Error ? error.message : '')) return error
  return new InvalidOptionError(
    'No transaction is open on what was given as transaction: send begin on one client first. A pool is none: each of ' +
      'its statements may go to another connection.',
  )
}
