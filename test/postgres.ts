import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { askKeeper, type PostgresSettings, spawnKeeper } from './postgres-keeper.ts'

/** A database of a test's own. */
export interface PostgresDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** A server of a test's own, for tests that stop it. */
export interface OwnPostgres {
  readonly url: string
  readonly host: string
  readonly port: number
  stop(mode: StopMode): Promise<void>
  /** On the same port, with the same databases. */
  start(): Promise<void>
  restart(mode: StopMode): Promise<void>
  createDatabase(): Promise<PostgresDatabase>
  /** The end of what the server logged. */
  log(): Promise<string>
  /** Stops it for good and removes its files. */
  end(): Promise<void>
}

/** `fast` rolls back and disconnects, `immediate` is a crash that the next start recovers from. */
export type StopMode = 'fast' | 'immediate'

/** The server all tests share: that of DATABASE_URL, else one that comes with the workspace. */
export async function postgresUrl(): Promise<string> {
  const given = process.env['DATABASE_URL']
  if (given !== undefined && given !== '') return given
  const keeper = process.env['DURABLY_POSTGRES_KEEPER']
  if (keeper === undefined) throw new Error('This project of vitest needs test/postgres-setup.ts as a globalSetup.')
  const { url } = await askKeeper(keeper, 'start')
  if (url === undefined) throw new Error('The keeper of Postgres gave no address.')
  return url
}

/** A new, empty database on the server that all tests share. */
export async function createDatabase(): Promise<PostgresDatabase> {
  return createDatabaseOn(await postgresUrl())
}

/** A server of its own, whatever DATABASE_URL says; it writes to the disk as a real one does. */
export async function startOwnPostgres(settings: PostgresSettings = {}): Promise<OwnPostgres> {
  const keeper = await spawnKeeper(settings)
  const start = async () => (await askKeeper(keeper.url, 'start')).url
  const url = await start()
  if (url === undefined) throw new Error('The keeper of Postgres gave no address.')
  const { hostname, port } = new URL(url)
  const stop = async (mode: StopMode) => void (await askKeeper(keeper.url, mode))
  return {
    url,
    host: hostname,
    port: Number(port),
    stop,
    start: async () => void (await start()),
    async restart(mode) {
      await stop(mode)
      await start()
    },
    createDatabase: () => createDatabaseOn(url),
    log: async () => (await askKeeper(keeper.url, 'log')).log ?? '',
    end: () => keeper.end(),
  }
}

async function createDatabaseOn(serverUrl: string): Promise<PostgresDatabase> {
  const name = `durably_test_${randomUUID().replaceAll('-', '')}`
  // The other strategy writes the whole of it into the log, which takes ten times as long.
  await execute(serverUrl, `create database ${name} strategy file_copy`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => execute(serverUrl, `drop database if exists ${name} with (force)`) }
}

/** One statement on a connection of its own. */
async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
