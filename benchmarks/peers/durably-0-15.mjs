import Database from 'better-sqlite3'
import { createDurably, defineJob } from 'durably-0-15'
import { PostgresDialect, SqliteDialect } from 'kysely'
import { z } from 'zod'
import { beside, durabilityOfLibsql, durabilityOfPostgres, durabilityOfSqlite, SYNCHRONOUS_OF } from '../databases.mjs'

/** It claims one run a statement: more at a time only helps where a statement is a round trip. */
export const concurrency = { runs: 10 }

/** It sets nothing itself; WAL is what its users would choose as well. */
const CONNECT = {
  async 'better-sqlite3'({ file, durability }) {
    const database = new Database(file)
    database.pragma('journal_mode = wal')
    database.pragma(`synchronous = ${SYNCHRONOUS_OF[durability]}`)
    return { dialect: new SqliteDialect({ database }), durability: () => durabilityOfSqlite(database) }
  },
  async libsql({ file, durability }) {
    const { createClient } = await import('@libsql/client')
    const { LibsqlDialect } = await import('@libsql/kysely-libsql')
    const client = createClient({ url: `file:${file}` })
    await client.execute('pragma journal_mode = wal')
    await client.execute(`pragma synchronous = ${SYNCHRONOUS_OF[durability]}`)
    return { dialect: new LibsqlDialect({ client }), durability: () => durabilityOfLibsql(client) }
  },
  async postgres({ url }) {
    const { default: pg } = await import('pg')
    const pool = new pg.Pool({ connectionString: url })
    return { dialect: new PostgresDialect({ pool }), durability: () => durabilityOfPostgres(url) }
  },
}

export async function openRuns({ database, concurrency, body }) {
  const { dialect, durability } = await CONNECT[database.driver](database)
  const bench = defineJob({
    name: 'bench',
    input: z.looseObject({ n: z.number() }),
    async run(step, payload) {
      await body(payload, (name, run) => step.run(name, run))
      return { ok: true }
    },
  })
  const maxConcurrentRuns = database.driver === 'postgres' ? concurrency : 1
  const durably = createDurably({ dialect, jobs: { bench }, maxConcurrentRuns })
  await durably.migrate()
  return {
    durability,
    enqueue: (payload) => durably.jobs.bench.trigger(payload),
    enqueueMany: (payloads) => durably.jobs.bench.batchTrigger(payloads.map((input) => ({ input }))),
    start: () => durably.start(),
    unfinished: async () =>
      Number(await beside(database, "select count(*) from durably_runs where status in ('pending', 'leased')")),
    recover: () =>
      beside(database, "update durably_runs set lease_expires_at = '2000-01-01T00:00:00.000Z' where status = 'leased'"),
  }
}
