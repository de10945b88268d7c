import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { describeWithPgBouncer, type PgBouncer, startPgBouncer } from '../../../../test/pgbouncer'
import { type OwnPostgres, startOwnPostgres } from '../../../../test/postgres'
import { RetryAfterError, type SqlDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openMigrated, openOn } from '../instances'
import { newPool } from './kit'

/** Of the server, for all clients together: less than each of them asks for. */
const SESSIONS = 3

const POLLING = { pollingInterval: 20, concurrency: 8 }

const OURS = `'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'default_transaction_isolation'`

/** All that a session can have set for itself, by the session. */
async function settingsBySession(url: string): Promise<ReadonlyMap<number, unknown>> {
  const pool = newPool(url, { max: SESSIONS })
  const found = new Map<number, unknown>()
  // Each keeps a session of its own until all have one.
  const clients = await Promise.all(Array.from({ length: SESSIONS }, () => pool.connect()))
  await Promise.all(clients.map((client) => client.query('begin')))
  for (const client of clients) {
    // Which there are depends on the languages that a session has used: of that of functions there is one to migrate.
    const { rows } = await client.query<{ readonly pid: number; readonly settings: unknown }>(
      `select pg_backend_pid() as pid, (select json_object_agg(name, setting order by name) from pg_settings
        where context in ('user', 'superuser') and name <> 'application_name' and name not like 'plpgsql.%') as settings`,
    )
    for (const { pid, settings } of rows) found.set(pid, settings)
  }
  await Promise.all(clients.map((client) => client.query('commit')))
  for (const client of clients) client.release()
  await pool.end()
  return found
}

function everyKindOfStatement(durably: SqlDurably) {
  const mail = durably.defineJob({ name: 'mail', input: z.object({}) }, () => 'sent')
  return durably.defineJob({ name: 'order', input: z.object({ n: z.number() }) }, async (ctx, { n }) => {
    await ctx.run('flaky', { retry: { maxAttempts: 2 } }, ({ attempt }) => {
      if (attempt === 1) throw new RetryAfterError('not yet', 1)
    })
    await ctx.transaction('book', { timeout: 60_000 }, async (trx) => {
      await sql`insert into orders (id) values (${n})`.execute(trx)
    })
    return ctx.wait('sent', await ctx.trigger('send', mail, {}))
  })
}

describeWithPgBouncer('behind PgBouncer, lending sessions by transaction', () => {
  let server: OwnPostgres
  let pooler: PgBouncer

  beforeAll(async () => {
    server = await startOwnPostgres()
    pooler = await startPgBouncer(server.url, { sessions: SESSIONS })
  })

  afterAll(async () => {
    await pooler.end()
    await server.end()
  })

  async function newDatabase(): Promise<string> {
    const database = await server.createDatabase()
    onTestFinished(() => database.drop())
    return pooler.through(database.url)
  }

  it('leaves nothing on the sessions that it shares with another application', async () => {
    const url = await newDatabase()
    const before = await settingsBySession(url)
    expect(before.size).toBe(SESSIONS)
    const dialect = postgres({ connectionString: url, prepare: false, listen: false, schema: 'jobs' })
    const durably = await openMigrated(dialect, POLLING)
    await sql`create table orders (id integer)`.execute(durably.db)
    const order = everyKindOfStatement(durably)
    durably.start()
    await durably.transaction((transaction) => order.trigger({ n: -1 }, { transaction }))
    await order.batchTrigger(Array.from({ length: 12 }, (_, n) => ({ payload: { n } })))
    await durably.cancel((await order.trigger({ n: 0 }, { delay: 600_000 })).id)
    await expect.poll(async () => (await durably.counts()).completed).toBe(26)
    await durably.close()
    expect(await settingsBySession(url)).toEqual(before)
  })

  it('has limits of its own in each of its transactions', async () => {
    const url = await newDatabase()
    const durably = await openMigrated(postgres({ connectionString: url, prepare: false, listen: false }))
    const { rows } = await durably.transaction((trx) =>
      sql<{ readonly name: string; readonly value: string }>`
        select name, current_setting(name) as value from unnest(array[${sql.raw(OURS)}]) as name`.execute(trx),
    )
    expect(Object.fromEntries(rows.map(({ name, value }) => [name, value]))).toMatchObject({
      statement_timeout: '30s',
      lock_timeout: '5s',
      idle_in_transaction_session_timeout: '10s',
    })
  })

  it('does not wait for ever for what another application has locked', async () => {
    const url = await newDatabase()
    const durably = await openMigrated(postgres({ connectionString: url, prepare: false, listen: false }))
    const job = durably.defineJob({ name: 'keyed', input: z.object({}) }, () => {})
    const other = newPool(url, { max: 1 })
    await job.trigger({}, { idempotencyKey: 'a' })
    const holder = await other.connect()
    await holder.query('begin; lock table durably_runs in access exclusive mode')
    await expect(job.trigger({}, { idempotencyKey: 'b' })).rejects.toMatchObject({ code: 'STORAGE_BUSY' })
    await holder.query('rollback')
    holder.release()
  })

  it('says what to do when statements are prepared', async () => {
    const url = await newDatabase()
    await (await openMigrated(postgres({ connectionString: url, prepare: false, listen: false }))).close()
    const durably = openOn(postgres({ connectionString: url, listen: false }), POLLING)
    const errors: string[] = []
    durably.on('worker:error', ({ error }) => errors.push(error))
    await sql`create table orders (id integer)`.execute(durably.db)
    const order = everyKindOfStatement(durably)
    durably.start()
    await Promise.all(Array.from({ length: 20 }, (_, n) => order.trigger({ n })))
    await expect.poll(async () => (await durably.counts().catch(() => null))?.completed).toBe(40)
    await durably.close()
    // A PgBouncer that keeps prepared statements apart has no trouble with them.
    const unexplained = errors.filter((error) => /prepared/.test(error) && !/prepare: false/.test(error))
    expect(unexplained).toEqual([])
    expect(await server.log()).not.toMatch(/bind message supplies/)
  })

  it('says what to do when the URL chooses a schema', async () => {
    const url = new URL(await newDatabase())
    url.searchParams.set('options', '-c search_path=jobs')
    const durably = openOn(postgres({ connectionString: url.href, prepare: false, listen: false }))
    await expect(durably.migrate()).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringContaining('postgres({ …, schema })'),
    })
  })
})

describeWithPgBouncer('behind PgBouncer, lending sessions to connections', () => {
  let server: OwnPostgres
  let pooler: PgBouncer

  beforeAll(async () => {
    server = await startOwnPostgres()
    const settings = { pool_mode: 'session', query_wait_timeout: '1' }
    pooler = await startPgBouncer(server.url, { sessions: 1, settings })
  })

  afterAll(async () => {
    await pooler.end()
    await server.end()
  })

  it('goes on preparing statements after errors of the pooler that are about something else', async () => {
    const database = await server.createDatabase()
    onTestFinished(() => database.drop())
    await (await openMigrated(postgres({ connectionString: database.url }))).close()
    const url = pooler.through(database.url)
    const pool = newPool(url, { max: 1 })
    const durably = openOn(postgres({ pool, listen: false }))
    const another = newPool(url, { max: 1 })
    await another.query('select 1')
    await expect(durably.counts()).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringMatching(/^query_wait_timeout$/),
      cause: { code: '08P01' },
    })
    await another.end()
    expect(await durably.counts()).toMatchObject({ pending: 0 })
    expect((await pool.query('select name from pg_prepared_statements')).rowCount).toBeGreaterThan(0)
  })
})
