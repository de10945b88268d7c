import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startOwnPostgres } from '../../../../test/postgres'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { postgres } from '../../src/postgres'
import { openMigrated, openOn } from '../instances'
import { newPool, newSession, WITHOUT_POLLING } from './kit'

const ROUNDS = scaled({ quick: 60, full: 1500 })

async function newServer() {
  const server = await startOwnPostgres()
  onTestFinished(() => server.end())
  const { url } = await server.createDatabase()
  const durably = await openMigrated(postgres({ connectionString: url }), WITHOUT_POLLING)
  const job = durably.defineJob({ name: 'job', input: z.object({ secret: z.string() }) }, () => {})
  return { server, url, durably, job }
}

it("onConflict: 'reject' tells the server's log nothing, payloads least of all", async () => {
  const { server, durably, job } = await newServer()
  const options = { idempotencyKey: 'k', onConflict: 'reject', labels: { kind: 'secret' } } as const
  await job.trigger({ secret: 'SECRET-1' }, options)
  const refused = { code: 'CONFLICT', message: expect.stringContaining('different payload') }
  await expect(job.trigger({ secret: 'SECRET-2' }, options)).rejects.toMatchObject(refused)
  const batch = ['SECRET-3', 'SECRET-4'].map((secret, n) => ({
    payload: { secret },
    options: n === 0 ? { labels: { kind: 'secret' } } : options,
  }))
  await expect(job.batchTrigger(batch)).rejects.toMatchObject(refused)
  await durably.transaction(async (transaction) => {
    await expect(job.trigger({ secret: 'SECRET-5' }, { ...options, transaction })).rejects.toMatchObject(refused)
  })
  expect(await durably.getRuns()).toMatchObject([{ payload: { secret: 'SECRET-1' } }])
  expect(await durably.getRuns({ labels: { kind: 'secret' } })).toHaveLength(1)
  const log = await server.log()
  expect(log).not.toContain('SECRET')
  const errors = log.split('\n').filter((line) => line.includes('ERROR'))
  // Of the look for tables that are not there yet.
  expect(errors.filter((line) => !line.includes('durably_schema_versions'))).toEqual([])
})

it("onConflict: 'reject' in an open transaction does not keep the run that has the key from going on", async () => {
  const { durably } = await newServer()
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const job = durably.defineJob({ name: 'steps', input: z.object({}) }, async (ctx) => {
    await ctx.run('one', () => 1)
    await ctx.run('two', () => gate)
    for (let n = 0; n < 5; n++) await ctx.run(`more ${n}`, () => n)
  })
  const options = { idempotencyKey: 'k', onConflict: 'reject' } as const
  const { id } = await job.trigger({}, options)
  durably.start()
  await expect.poll(async () => (await durably.getSteps(id)).length).toBeGreaterThan(0)
  await durably.transaction(async (transaction) => {
    expect(await job.trigger({}, { ...options, transaction })).toMatchObject({ id, deduplicated: true })
    goOn()
    await job.wait(id)
  })
})

it("onConflict: 'reject' does not wait for who holds the run that has the key", async () => {
  const { url, job } = await newServer()
  const options = { idempotencyKey: 'k', onConflict: 'reject' } as const
  const { id } = await job.trigger({ secret: '1' }, options)
  const somebody = await newSession(url)
  await somebody.query('begin')
  await somebody.query('select 1 from durably_runs for update')
  expect(await job.trigger({ secret: '1' }, options)).toMatchObject({ id, deduplicated: true })
  await expect(job.trigger({ secret: '2' }, options)).rejects.toMatchObject({ code: 'CONFLICT' })
})

/** A pool on which something can happen between the two statements of a trigger that may be refused. */
function newGatedPool(url: string) {
  const meanwhile: (() => Promise<unknown>)[] = []
  const pool = newPool(url).on('connect', (client) => {
    const query = client.query.bind(client) as (...values: unknown[]) => Promise<unknown>
    const gated = async (...values: unknown[]) => {
      if (String((values[0] as { text?: unknown }).text).includes('conflict as materialized'))
        await meanwhile.shift()?.()
      return query(...values)
    }
    Object.assign(client, { query: gated })
  })
  return { pool, meanwhile }
}

it('a holder that is deleted between the two looks at it is no error of the caller', async () => {
  const { url, job } = await newServer()
  const { pool, meanwhile } = newGatedPool(url)
  const other = await newSession(url)
  const gated = openOn(postgres({ pool, listen: false }), WITHOUT_POLLING)
  const own = gated.defineJob({ name: 'job', input: z.object({ secret: z.string() }) }, () => {})
  const options = { idempotencyKey: 'k', onConflict: 'reject' } as const
  const remove = () => other.query('delete from durably_runs')
  const replaceBy = async (secret: string) => {
    await remove()
    await job.trigger({ secret }, options)
  }
  const { id: first } = await job.trigger({ secret: '1' }, options)
  meanwhile.push(remove)
  const { id: second, deduplicated } = await own.trigger({ secret: '1' }, options)
  expect([second !== first, deduplicated]).toEqual([true, false])
  meanwhile.push(() => replaceBy('1'))
  const third = await own.trigger({ secret: '1' }, options)
  expect([third.id !== second, third.deduplicated]).toEqual([true, true])
  meanwhile.push(() => replaceBy('2'))
  await expect(own.trigger({ secret: '1' }, options)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(meanwhile).toEqual([])
})

it('a holder that is deleted meanwhile is no error of the caller', async () => {
  const { url, job } = await newServer()
  const other = await newSession(url)
  let isOver = false
  let deleted = 0
  const deleting = (async () => {
    while (!isOver) deleted += (await other.query('delete from durably_runs')).rowCount ?? 0
  })()
  const seen = { created: 0, deduplicated: 0, refused: 0 }
  const callers = Array.from({ length: 4 }, async (_, caller) => {
    for (let round = 0; round < ROUNDS; round++) {
      try {
        const { deduplicated } = await job.trigger(
          { secret: `${caller % 2}` },
          { idempotencyKey: 'k', onConflict: 'reject' },
        )
        seen[deduplicated ? 'deduplicated' : 'created'] += 1
      } catch (error) {
        // Who loses against the deletions again and again is told that.
        expect(['CONFLICT', 'STORAGE_BUSY']).toContain((error as { code?: unknown }).code)
        seen.refused += 1
      }
    }
  })
  await Promise.all(callers).finally(() => {
    isOver = true
  })
  await deleting
  expect(seen.created + seen.deduplicated + seen.refused).toBe(4 * ROUNDS)
  expect(deleted).toBeGreaterThan(0)
  reportSuite({ suite: "onConflict: 'reject' while the holder is deleted", ...seen })
})
