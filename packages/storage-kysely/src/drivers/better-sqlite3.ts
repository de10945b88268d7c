import Database from 'better-sqlite3'
import { InvalidOptionError } from '@coji/durably-core'
import { type OptionNames, refuseUnknownOptions } from '@coji/durably-core/extend'
import type { Durability, DurablyDialect } from '../dialect'
import { assertSynchronous, assertWal, connectionPragmas } from './pragmas'
import { synchronousDialect } from './synchronous'

/** A file, or an open database. */
export type BetterSqlite3Config =
  /** A path, or `:memory:`. */
  | string
  | {
      /** A path, or `:memory:`. */
      readonly filename: string
      /** What better-sqlite3 takes. `timeout` is 20 ms unless given: durably waits for a busy file itself. */
      readonly options?: Database.Options
    }
  /** An open database. It is closed with durably. */
  | { readonly database: Database.Database }

/** SQLite through better-sqlite3: WAL, one synchronous transaction per commit, statements prepared once. */
export function betterSqlite3(config: BetterSqlite3Config): DurablyDialect {
  refuseBadConfig(config)
  const location = locationOf(config)
  return synchronousDialect({
    location,
    isGiven: typeof config !== 'string' && 'database' in config,
    open: (durability) => connect(config, { location, durability }),
  })
}

interface Settings {
  readonly location: string
  readonly durability: Durability | null
}

function locationOf(config: BetterSqlite3Config): string {
  if (typeof config === 'string') return config
  return 'filename' in config ? config.filename : config.database.name
}

function connect(config: BetterSqlite3Config, settings: Settings): Database.Database {
  if (typeof config === 'object' && 'database' in config) return setUp(config.database, settings)
  const { filename, options = {} } = typeof config === 'string' ? { filename: config } : config
  const database = new Database(filename, { timeout: 20, ...options })
  try {
    return setUp(database, settings)
  } catch (error) {
    database.close()
    throw error
  }
}

function setUp(database: Database.Database, { location, durability }: Settings): Database.Database {
  if (durability === null || database.readonly) return database
  const mode: unknown = database.pragma('journal_mode = WAL', { simple: true })
  if (!database.memory) assertWal(mode, location)
  for (const pragma of connectionPragmas(durability)) database.pragma(pragma)
  assertSynchronous(database.pragma('synchronous', { simple: true }), durability, location)
  return database
}

const CONFIG: OptionNames<Exclude<BetterSqlite3Config, string>> = { filename: true, options: true, database: true }

function refuseBadConfig(config: BetterSqlite3Config): void {
  if (typeof Object(config).prepare === 'function') {
    throw new InvalidOptionError('betterSqlite3() takes an open database as { database }.')
  }
  if (typeof config === 'object' && config !== null) refuseUnknownOptions('betterSqlite3()', config, CONFIG)
  const path: unknown = typeof config === 'object' && config !== null && 'filename' in config ? config.filename : config
  if (typeof Object(config).database === 'object') return
  if (typeof path !== 'string' || path === '') throw new InvalidOptionError('betterSqlite3() needs the path of a file.')
  if (path.startsWith('file:'))
    throw new InvalidOptionError(`betterSqlite3() takes a path, not a URL: ${path.slice(5)}`)
}
