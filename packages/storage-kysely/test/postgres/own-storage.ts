import { afterAll, beforeAll, beforeEach } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { Watch } from './orders'

/** What the tests of a file share. It is there once they begin. */
export interface OwnStorage {
  readonly database: PostgresDatabase
  readonly storage: KyselyStorage
  readonly watch: Watch
}

/** A storage on a database of the file's own, with no runs before each test. */
export function useOwnStorage(): OwnStorage {
  const own = {} as { -readonly [Name in keyof OwnStorage]: OwnStorage[Name] }
  beforeAll(async () => {
    own.database = await createDatabase()
    own.watch = await Watch.open(own.database.url)
    own.storage = createKyselyStorage({ dialect: postgres({ connectionString: own.database.url, listen: false }) })
    await own.storage.migrate()
  })
  beforeEach(() => own.watch.query('truncate durably_runs, durably_job_starts'))
  afterAll(async () => {
    await own.storage.close()
    await own.watch.end()
    await own.database.drop()
  })
  return own
}
