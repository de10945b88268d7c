import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createDurably, type DurablyDialect, type SqlDurably } from '@coji/durably'
import { withLogPersistence } from '@coji/durably/plugins'
import { Misuse, Refusal } from '../refusal'
import { type Address, EXAMPLES, parseAddress } from './address'
import { asItIs, readOnly } from './read-only'
import { explainTrouble, schemaTrouble } from './trouble'

/** Which tables of which database. */
export interface Place {
  readonly db?: string | undefined
  readonly tablePrefix?: string | undefined
  readonly schema?: string | undefined
}

/** An instance that executes nothing, and knows no job. */
export interface OpenDatabase {
  readonly durably: SqlDurably
  /** As people may read it. */
  readonly name: string
  readonly address: Address
  /** The version of its tables. */
  readonly version: number
}

export interface Access {
  readonly writes?: boolean
  /** Tables that are missing or old are no trouble. */
  readonly anyVersion?: boolean
}

/** Opens the database for as long as `body` works on it. Trouble comes out as a sentence. */
export async function withDatabase<T>(
  place: Place,
  access: Access,
  body: (database: OpenDatabase) => Promise<T>,
): Promise<T> {
  if (place.db === undefined)
    throw new Misuse(`Which database? Name it with --db, such as ${EXAMPLES}, or in DURABLY_DB.`)
  const address = parseAddress(place.db)
  await refuseMissingFile(address)
  try {
    const durably = await connect(address, place, access)
    try {
      const state = await durably.storage.reportSchema()
      if (access.anyVersion !== true) schemaTrouble(state, { address, place })
      return await body({ durably, name: address.name, address, version: state.version })
    } finally {
      await durably.close()
    }
  } catch (error) {
    throw explainTrouble(error, address)
  }
}

/** SQLite would make an empty one. */
async function refuseMissingFile(address: Address): Promise<void> {
  if (address.kind !== 'file') return
  const { path } = address
  const found = await stat(path).catch(() => null)
  if (found === null) {
    throw new Refusal(`There is no file ${path} (looked for ${resolve(path)}). Nothing was created; check --db.`)
  }
  if (!found.isFile()) throw new Refusal(`${path} is no file. Name the database file itself.`)
}

async function connect(address: Address, place: Place, { writes = false }: Access): Promise<SqlDurably> {
  const dialect = await dialectOf(address, place)
  const { tablePrefix } = place
  const durably = createDurably({
    dialect: writes ? asItIs(dialect) : readOnly(dialect),
    ...(tablePrefix !== undefined && { tablePrefix }),
    logger: null,
  })
  // What is done by hand is part of the history of a run.
  return durably.use(withLogPersistence())
}

/** Enough for what a person asks for at a time. */
const CONNECTIONS = 4

/** Only the driver that is needed is loaded. */
async function dialectOf(address: Address, { schema }: Place): Promise<DurablyDialect> {
  if (address.kind === 'postgres') {
    const { postgres } = await import('@coji/durably/postgres')
    return postgres({ connectionString: address.url, max: CONNECTIONS, ...(schema !== undefined && { schema }) })
  }
  if (schema !== undefined) throw new Refusal('--schema is for Postgres; SQLite has no schemas. Leave it out.')
  const { libsql } = await import('@coji/durably/libsql')
  return libsql(address.kind === 'file' ? fileUrl(address.path) : address.url)
}

function fileUrl(path: string): string {
  return `file:${encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23')}`
}
