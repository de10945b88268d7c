import { spawnKeeper } from './postgres-keeper.ts'

/**
 * As the global set-up of a project: one server for all projects and processes of a run of vitest, started when the first
 * test asks for it.
 */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env['DURABLY_POSTGRES_KEEPER'] !== undefined || hasServer()) return undefined
  const keeper = await spawnKeeper(FOR_MANY_TESTS)
  process.env['DURABLY_POSTGRES_KEEPER'] = keeper.url
  return async () => {
    delete process.env['DURABLY_POSTGRES_KEEPER']
    await keeper.end()
  }
}

function hasServer(): boolean {
  return (process.env['DATABASE_URL'] ?? '') !== ''
}

/** What survives a crash of the machine is not what these tests are about, and their databases are gone before they want tidying up. */
const FOR_MANY_TESTS = {
  ...{ fsync: 'off', full_page_writes: 'off', wal_level: 'minimal', max_wal_senders: 0 },
  autovacuum_naptime: '1h',
}
