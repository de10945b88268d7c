import type { JobContext, TransactionBody, TransactionOptions } from '@coji/durably-core'
import type { DurablyDatabase } from '@coji/durably-storage-kysely'
import type { Transaction } from 'kysely'

/**
 * What a job of an instance on a SQL database gets: `ctx.transaction` hands over Kysely's transaction with the tables of
 * that instance. In a job defined as a value, which has no instance yet, annotate it:
 * `ctx.transaction('charge', async (trx: Transaction<Tables>) => …)`.
 */
export interface SqlJobContext<DB = DurablyDatabase> extends JobContext {
  transaction<T>(name: string, body: TransactionBody<T, Transaction<DB>>): Promise<T>
  transaction<T>(name: string, options: TransactionOptions, body: TransactionBody<T, Transaction<DB>>): Promise<T>
  transaction<T, Trx>(name: string, body: TransactionBody<T, Trx>): Promise<T>
  transaction<T, Trx>(name: string, options: TransactionOptions, body: TransactionBody<T, Trx>): Promise<T>
}
