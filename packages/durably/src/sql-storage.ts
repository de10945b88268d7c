import {
  createKyselyStorage,
  type Durability,
  type DurablyDatabase,
  type KyselyStorage,
} from '@coji/durably-storage-kysely'
import type { Dialect, Kysely } from 'kysely'

/** A SQL database and how durably uses it. */
export type SqlDatabase<DB = DurablyDatabase> = {
  /** Before each table name. Default `durably_`. */
  readonly tablePrefix?: string | undefined
  /**
   * On SQLite `safe` (the default): an acknowledged commit survives a power cut. `fast`: it survives the end of the
   * process. On Postgres the server decides.
   */
  readonly durability?: Durability | undefined
} & (
  | {
      /** A Kysely dialect for SQLite or Postgres, or what `libsql()`, `betterSqlite3()`, `sqlocal()` or `postgres()` returns. */
      readonly dialect: Dialect
      readonly db?: undefined
    }
  | {
      /** The application's own Kysely instance. `close()` leaves it open. */
      readonly db: Kysely<DB>
      readonly dialect?: undefined
    }
)

export function createSqlStorage<DB>({ tablePrefix, durability, dialect, db }: SqlDatabase<DB>): KyselyStorage<DB> {
  return createKyselyStorage<DB>({
    ...(dialect === undefined ? { db } : { dialect }),
    ...(tablePrefix !== undefined && { tablePrefix }),
    ...(durability !== undefined && { durability }),
  })
}

export const NO_DATABASE = { tablePrefix: undefined, durability: undefined, dialect: undefined, db: undefined }

const PLACES = ['dialect', 'db', 'storage'] as const

/** The places for data that are given; more than one is a mistake. */
export function placesIn(options: Partial<Record<(typeof PLACES)[number], unknown>>): readonly string[] {
  return PLACES.filter((name) => options[name] !== undefined)
}
