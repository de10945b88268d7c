import type { CompiledQuery, DatabaseConnection, QueryResult, Transaction } from 'kysely'
import { isTrouble } from './driver-errors'

/** What befell the database while a transaction of the application was open on it. */
export interface TroubleWatch {
  /** What the driver threw. */
  trouble(): { readonly error: unknown } | null
  end(): void
}

/**
 * Hears what the driver says to each statement of the transaction: what a body throws may be anything, and it may catch
 * what a statement threw. After trouble nothing more is sent. SQLite has rolled back by itself then, and what followed
 * would be committed on its own.
 */
export async function watchForTrouble(trx: Transaction<unknown>): Promise<TroubleWatch> {
  const connection = await trx.getExecutor().provideConnection(async (own) => own)
  const { executeQuery } = connection
  let trouble: { readonly error: unknown } | null = null
  const own = Object.hasOwn(connection, 'executeQuery')
  const watched: DatabaseConnection['executeQuery'] = async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
    if (trouble !== null) throw trouble.error
    try {
      return await executeQuery.call<DatabaseConnection, [CompiledQuery], Promise<QueryResult<R>>>(connection, query)
    } catch (error) {
      if (isTrouble(error)) trouble ??= { error }
      throw error
    }
  }
  connection.executeQuery = watched
  return {
    trouble: () => trouble,
    end() {
      // Kysely may have put a function of its own there, to log.
      if (connection.executeQuery !== watched) return
      if (own) connection.executeQuery = executeQuery
      else Reflect.deleteProperty(connection, 'executeQuery')
    },
  }
}
