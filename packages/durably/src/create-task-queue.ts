import { InvalidOptionError } from '@coji/durably-core'
import { refuseUnknownOptions, type OptionNames } from '@coji/durably-core/extend'
import { createTaskQueue as createOnStorage, type TaskQueue, type TaskQueueOptions } from '@coji/durably-core/queue'
import type { DurablyDatabase } from '@coji/durably-storage-kysely'
import type { Dialect, Kysely } from 'kysely'
import { createSqlStorage, NO_DATABASE, placesIn, type SqlDatabase } from './sql-storage'

/** An instance for whatever tables: their types do not matter here, and make each instance a type of its own. */
export type AnyKysely = Pick<Kysely<unknown>, 'getExecutor' | 'isTransaction' | 'destroy'>

/** A queue on a SQL database. Everything of core's `TaskQueueOptions` applies, with a database for `storage`. */
export type DatabaseQueueOptions = Omit<TaskQueueOptions, 'storage'> &
  Pick<SqlDatabase, 'tablePrefix' | 'durability'> & { readonly storage?: undefined } & (
    | {
        /** A Kysely dialect, or what one of the helpers returns. */
        readonly dialect: Dialect
        readonly db?: undefined
      }
    | {
        /** The application's own Kysely instance. `close()` leaves it open. */
        readonly db: AnyKysely
        readonly dialect?: undefined
      }
  )

const OPTIONS: OptionNames<TaskQueueOptions | DatabaseQueueOptions> = {
  dialect: true,
  db: true,
  tablePrefix: true,
  durability: true,
  storage: true,
  retry: true,
  keep: true,
  logger: true,
  pollingInterval: true,
  heartbeatInterval: true,
  staleThreshold: true,
  concurrency: true,
  workerId: true,
  maxCrashes: true,
  environment: true,
}

/**
 * A task queue in the memory of this process, on a Kysely dialect, on an application's Kysely instance, or on any other
 * storage, that of a durably instance included. It executes nothing until `start()`.
 *
 * ```ts
 * const queue = createTaskQueue({ dialect: libsql('file:app.db') })
 * ```
 */
export function createTaskQueue<TTasks extends object = Record<string, unknown>>(
  options: TaskQueueOptions | DatabaseQueueOptions = {},
): TaskQueue<TTasks> {
  refuseUnknownOptions('createTaskQueue()', options, OPTIONS)
  const given = placesIn(options)
  if (given.length > 1) {
    throw new InvalidOptionError(`createTaskQueue() takes a dialect, a db or a storage, not ${given.join(' and ')}.`)
  }
  const { tablePrefix, durability, dialect, db, ...queue } = { ...NO_DATABASE, ...options }
  const database = { tablePrefix, durability }
  if (dialect !== undefined) return createOnStorage({ ...queue, storage: createSqlStorage({ ...database, dialect }) })
  if (db === undefined) return createOnStorage(queue)
  return createOnStorage({ ...queue, storage: createSqlStorage({ ...database, db: db as Kysely<DurablyDatabase> }) })
}
