import { PGlite } from '@electric-sql/pglite'
import { type Dialect, PostgresDialect, sql, type Transaction } from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import pg from 'pg'
import postgresJs from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { pgliteDialect } from '../../../storage-kysely/test/pglite-dialect'
import { type DurablyDatabase, type EventStream, RetryAfterError, type StoredEvent } from '../../src/index'
import { withLogPersistence } from '../../src/plugins'
import { postgresPlace } from '../databases'
import { openMigrated } from '../instances'

interface Opened {
  readonly dialect: Dialect
  /** Once durably is closed. */
  end(): Promise<void>
}

async function onPostgresJs(): Promise<Opened> {
  const client = postgresJs(postgresPlace(), { max: 4, onnotice: () => {} })
  return { dialect: new PostgresJSDialect({ postgres: client }), end: async () => {} }
}

async function onPglite(): Promise<Opened> {
  const pglite = await PGlite.create()
  return { dialect: pgliteDialect(pglite, 'public'), end: () => pglite.close() }
}

async function onBarePg(): Promise<Opened> {
  const pool = new pg.Pool({ connectionString: postgresPlace(), max: 4 })
  // Its database is dropped under it when the test is over.
  pool.on('error', () => {})
  return { dialect: new PostgresDialect({ pool }), end: async () => {} }
}

async function all(stream: EventStream): Promise<StoredEvent[]> {
  const events: StoredEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

describe.each([
  ['postgres.js', onPostgresJs],
  ['PGlite', onPglite],
  ['a bare PostgresDialect', onBarePg],
])('%s', (_name, open) => {
  it('runs a job with steps, retries, a child, a signal and a transaction, and keeps its history', async () => {
    const { dialect, end } = await open()
    onTestFinished(end)
    const durably = await openMigrated(dialect, { pollingInterval: 50 })
    durably.use(withLogPersistence())
    await sql`create table orders (id integer primary key)`.execute(durably.db)
    const mail = durably.defineJob({ name: 'mail', input: z.object({ to: z.string() }) }, (_ctx, { to }) => `to ${to}`)
    const order = durably.defineJob({ name: 'order', input: z.object({ text: z.string() }) }, async (ctx, { text }) => {
      const stock = await ctx.run('reserve', { retry: { maxAttempts: 3 } }, ({ attempt, log }) => {
        log.info('trying', { attempt })
        if (attempt < 3) throw new RetryAfterError('not yet', 10)
        return attempt
      })
      await ctx.stream('talk', async (emit) => emit(text))
      await ctx.transaction('book', async (trx: Transaction<DurablyDatabase>) => {
        await sql`insert into orders (id) values (1)`.execute(trx)
      })
      const { by } = await ctx.waitFor('approval', { schema: z.object({ by: z.string() }) })
      const sent = await ctx.wait('sent', await ctx.trigger('send', mail, { to: by }))
      return { stock, sent, text }
    })
    const text = 'ü \u0000 \ud800 "quoted" \\ 💾'
    const { id } = await durably.transaction((transaction) =>
      order.trigger({ text }, { transaction, labels: { kind: 'smoke' } }),
    )
    const following = all(durably.subscribe(id))
    durably.start()
    await expect.poll(async () => (await order.getRun(id))?.waitingFor).toMatchObject({ steps: ['approval'] })
    await durably.signal(id, 'approval', { by: 'ada' })
    await order.wait(id)

    const run = await order.getRun(id)
    expect(run).toMatchObject({
      status: 'completed',
      output: { stock: 3, sent: 'to ada', text },
      labels: { kind: 'smoke' },
    })
    expect(run?.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect((await durably.getSteps(id)).map(({ name, status }) => `${name} ${status}`)).toEqual([
      ...['reserve failed', 'reserve failed', 'reserve completed', 'talk completed', 'book completed'],
      ...['approval completed', 'send completed', 'sent completed'],
    ])
    expect((await sql<{ readonly id: number }>`select id from orders`.execute(durably.db)).rows).toEqual([{ id: 1 }])
    const events = await durably.getEvents(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(await following).toEqual(events)
    expect(await durably.getLogs(id)).toMatchObject([1, 2, 3].map((attempt) => ({ data: { attempt } })))

    const failing = durably.defineJob({ name: 'failing', input: z.object({}) }, async (ctx) => {
      const refused = ctx.transaction('again', async (trx: Transaction<DurablyDatabase>) => {
        await sql`insert into orders (id) values (1)`.execute(trx)
      })
      await refused
    })
    await expect(failing.triggerAndWait({})).rejects.toMatchObject({ name: 'RunFailedError' })
    await durably.close()
  })
})
