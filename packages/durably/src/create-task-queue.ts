import { InvalidOptionError } from '@coji/durably-core'
import { createTaskQueue as createOnStorage, type TaskQueue, type TaskQueueOptions } from '@coji/durably-core/queue'
import type { DurablyDatabase } from '@coji/durably-storage-kysely'
import { createSqlStorage, placesIn, type SqlDatabase } from './sql-storage'

/** A queue on a SQL database. Everything of core's `TaskQueueOptions` applies, with a database for `storage`. */
export type DatabaseQueueOptions<DB = DurablyDatabase> = Omit<TaskQueueOptions, 'storage'> &
  SqlDatabase<DB> & { readonly storage?: undefined }

/**
 * A task queue in the memory of this process, on a Kysely dialect, on an application's Kysely instance, or on any other
 * storage, that of a durably instance included. It executes nothing until `start()`.
 *
 * ```ts
 * const queue = createTaskQueue({ dialect: libsql('file:app.db') })
 * ```
 */
export function createTaskQueue<TTasks extends object = Record<string, unknown>>(
  options: TaskQueueOptions | DatabaseQueueOptions<never> = {},
): TaskQueue<TTasks> {
  const given = placesIn(options)
  if (given.length > 1) {
    throw new InvalidOptionError(`createTaskQueue() takes a dialect, a db or a storage, not ${given.join(' and ')}.`)
  }
  if (!('dialect' in options || 'db' in options) || given[0] === 'storage') return createOnStorage(options)
  const { tablePrefix, durability, dialect, db, ...queue } = options
  return createOnStorage({ ...queue, storage: createSqlStorage(options) })
}
