import { sql } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startOwnPostgres } from '../../../../test/postgres'
import type { SqlDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openMigrated } from '../instances'
import { newPool, newSession } from './kit'

/**
 * One server plays both: sessions that are open when it is demoted stay read-only for ever, and those that are opened
 * after the promotion reach a primary.
 */
async function newPair() {
  const server = await startOwnPostgres()
  onTestFinished(() => server.end())
  const { url } = await server.createDatabase()
  const admin = await newSession(url)
  await admin.query('set default_transaction_read_only = off')
  return {
    url,
    async demote() {
      await admin.query('alter system set default_transaction_read_only = on')
      await admin.query('select pg_reload_conf()')
      // The server tells its sessions before it begins one that has the new setting.
      const isToBeRead = async () => {
        const session = await newSession(url)
        const { rows } = await session.query('show default_transaction_read_only')
        await session.end()
        return rows
      }
      await expect.poll(isToBeRead).toEqual([{ default_transaction_read_only: 'on' }])
    },
    async promoteAnother() {
      await admin.query(`alter database "${new URL(url).pathname.slice(1)}" set default_transaction_read_only = off`)
    },
    async sessions(): Promise<readonly number[]> {
      const { rows } = await admin.query<{ readonly pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
          and backend_type = 'client backend'`,
      )
      return rows.map(({ pid }) => pid)
    },
  }
}

it.each([
  ['its own pool', (url: string) => postgres({ connectionString: url, listen: false })],
  ['a pool of the application', (url: string) => postgres({ pool: newPool(url), listen: false })],
])('leaves a server that was demoted, with all connections of %s', async (_name, open) => {
  const pair = await newPair()
  const durably = await openMigrated(open(pair.url), { concurrency: 4, pollingInterval: 20 })
  const errors: string[] = []
  durably.on('worker:error', ({ code }) => errors.push(code))
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const job = durably.defineJob({ name: 'steps', input: z.object({}) }, async (ctx) => {
    await ctx.run('one', () => 1)
    await ctx.run('two', () => gate)
    await ctx.transaction('three', async () => 3)
  })
  const ids = (await job.batchTrigger(Array.from({ length: 8 }, () => ({ payload: {} })))).map(({ id }) => id)
  durably.start()
  await expect.poll(async () => (await durably.counts()).running).toBe(4)
  const before = await pair.sessions()
  expect(before.length).toBeGreaterThan(0)
  await pair.demote()
  goOn()
  await expect.poll(() => errors).toContain('STORAGE_READONLY')
  await pair.promoteAnother()
  for (const id of ids) await expect.poll(async () => (await durably.getRun(id))?.status).toBe('completed')
  await expect.poll(async () => (await pair.sessions()).filter((pid) => before.includes(pid))).toEqual([])
  await durably.close()
})

const write = (durably: SqlDurably) => durably.transaction((trx) => sql`insert into notes values (1)`.execute(trx))

/** With connections at rest that transactions have used, on a server that was demoted after them. */
async function withTransactionsOnly() {
  const pair = await newPair()
  const durably = await openMigrated(postgres({ connectionString: pair.url, max: 6, listen: false }))
  await sql`create table notes (n integer)`.execute(durably.db)
  let open = 0
  await Promise.all(
    [1, 2, 3].map(() =>
      durably.transaction(async (trx) => {
        await sql`select 1`.execute(trx)
        open += 1
        await expect.poll(() => open).toBe(3)
      }),
    ),
  )
  return { pair, durably }
}

it('leaves a server that was demoted with all connections when only transactions of the application write', async () => {
  const { pair, durably } = await withTransactionsOnly()
  await pair.demote()
  await expect.poll(() => write(durably).catch(({ code }) => code)).toBe('25006')
  await pair.promoteAnother()
  for (let n = 0; n < 4; n++) await write(durably)
})

it('does not leave a server for a transaction that was to be read only', async () => {
  const { pair, durably } = await withTransactionsOnly()
  const before = await pair.sessions()
  await expect(
    durably.db
      .transaction()
      .setAccessMode('read only')
      .execute((trx) => sql`insert into notes values (1)`.execute(trx)),
  ).rejects.toMatchObject({ code: '25006' })
  await write(durably)
  const gone = async () => {
    const after = await pair.sessions()
    return before.filter((pid) => !after.includes(pid))
  }
  await expect.poll(async () => (await gone()).length).toBeGreaterThan(0)
  for (let n = 0; n < 4; n++) await write(durably)
  expect(await gone()).toHaveLength(1)
})

it('knows the old connections of a pool of the application also when it has not used them before', async () => {
  const pair = await newPair()
  const pool = newPool(pair.url, { max: 4 })
  const durably = await openMigrated(postgres({ pool, listen: false }))
  const job = durably.defineJob({ name: 'job', input: z.object({}) }, () => {})
  const elsewhere = await Promise.all([1, 2, 3].map(() => pool.connect()))
  await pair.demote()
  await expect.poll(() => job.trigger({}).catch(({ code }) => code)).toBe('STORAGE_READONLY')
  await pair.promoteAnother()
  await expect.poll(() => job.trigger({}).catch(({ code }) => code)).toMatchObject({ status: 'pending' })
  for (const client of elsewhere) client.release()
  for (let n = 0; n < 4; n++) await job.trigger({})
  expect(await durably.counts()).toMatchObject({ pending: 5 })
})
