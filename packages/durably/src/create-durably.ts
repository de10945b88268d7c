import { createDurably as createOnStorage, InvalidOptionError } from '@coji/durably-core'
import { refuseUnknownOptions } from '@coji/durably-core/extend'
import type { Durably, DurablyOptions, JobHandle, JobOptions, Plugin, StorableSchema } from '@coji/durably-core'
import type { OptionNames } from '@coji/durably-core/extend'
import type { DurablyDatabase, KyselyStorage } from '@coji/durably-storage-kysely'
import type { Kysely, Transaction } from 'kysely'
import type { SqlJobContext } from './sql-job-context'
import { createSqlStorage, NO_DATABASE, placesIn, type SqlDatabase } from './sql-storage'

/** An instance on a SQL database. Everything of core's `DurablyOptions` applies, with a database for `storage`. */
export type DatabaseOptions<DB = DurablyDatabase> = Omit<DurablyOptions, 'storage'> &
  SqlDatabase<DB> & { readonly storage?: undefined }

/** An instance that shows its database. */
export interface SqlDurably<DB = DurablyDatabase> extends Durably {
  /** The Kysely instance durably works with, also for the application's own tables. */
  readonly db: Kysely<DB>
  readonly storage: KyselyStorage<DB>
  transaction<T>(body: (transaction: Transaction<DB>) => Promise<T>): Promise<T>
  defineJob<TName extends string, TInput, TPayload, TReturned, TOutput>(
    options: JobOptions<TName, TInput, TPayload> & { readonly output: StorableSchema<TReturned, TOutput> },
    execute: (ctx: SqlJobContext<DB>, payload: TPayload) => TReturned | Promise<TReturned>,
  ): JobHandle<TName, TInput, TOutput>
  defineJob<TName extends string, TInput, TPayload, TOutput>(
    options: JobOptions<TName, TInput, TPayload> & { readonly output?: undefined },
    execute: (ctx: SqlJobContext<DB>, payload: TPayload) => TOutput | Promise<TOutput>,
  ): JobHandle<TName, TInput, TOutput>
  use(plugin: Plugin): SqlDurably<DB>
}

/**
 * Creates an instance on a Kysely dialect, on an application's Kysely instance, or on any other storage. It does
 * nothing until `migrate()`, `start()` or a trigger.
 *
 * ```ts
 * const durably = createDurably({ dialect: libsql('file:app.db') })
 * ```
 */
export function createDurably<DB = DurablyDatabase>(options: DatabaseOptions<DB>): SqlDurably<DB>
export function createDurably(options: DurablyOptions): Durably
export function createDurably<DB>(options: DatabaseOptions<DB> | DurablyOptions): Durably {
  refuseUnknownOptions('createDurably()', options, OPTIONS)
  refuseMixture(options)
  const { tablePrefix, durability, dialect, db, ...engine } = { ...NO_DATABASE, ...options }
  if (engine.storage !== undefined) return createOnStorage({ ...engine, storage: engine.storage })
  const storage = createSqlStorage<DB>(options as DatabaseOptions<DB>)
  return Object.assign(createOnStorage({ ...engine, storage }), { db: storage.db })
}

const OPTIONS: OptionNames<DatabaseOptions | DurablyOptions> = {
  dialect: true,
  db: true,
  tablePrefix: true,
  durability: true,
  storage: true,
  pollingInterval: true,
  heartbeatInterval: true,
  staleThreshold: true,
  concurrency: true,
  workerId: true,
  maxCrashes: true,
  logger: true,
  environment: true,
}

function refuseMixture(options: Parameters<typeof placesIn>[0]): void {
  const given = placesIn(options)
  if (given.length === 1) return
  const found = given.length === 0 ? 'none of them' : given.join(' and ')
  throw new InvalidOptionError(`createDurably() takes a dialect, a db or a storage, and was given ${found}.`)
}
