import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { reportSuite } from '../../../../test/report'
import { createDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { openOn } from '../instances'
import { newPlace, newPool, newSession, type Place, WITHOUT_POLLING } from './kit'

const TRIGGERS = 40
const STEPS = 30
const KEY = 'held'
const PATIENCE_OVER = /^(CONNECTION_HELD|STORAGE_BUSY)$/

/** The triggers of the application that wait for an entry of the index on keys. */
const WAITING = `select count(*)::int as n from pg_stat_activity where datname = current_database()
  and wait_event_type = 'Lock' and query like '%insert into "durably_runs"%'`

async function holdKey(place: Place) {
  const somebody = await newSession(place.url)
  const api = createDurably({ dialect: postgres({ connectionString: place.url, listen: false }), logger: null })
  const held = api.defineJob({ name: 'held', input: z.object({}) }, () => {})
  const { id } = await held.trigger({})
  await api.close()
  await somebody.query('begin')
  await somebody.query('update durably_runs set idempotency_key = $1 where id = $2', [KEY, id])
  return somebody
}

const SIZES = [
  ['of ten connections', 10],
  ['of three connections', 3],
  ['of two connections', 2],
] as const

describe.each(SIZES)('a transaction of the application that holds an idempotency key, with a pool %s', (_name, max) => {
  it('keeps those who trigger with the key waiting, and neither runs nor leases', async () => {
    const place = await newPlace()
    const somebody = await holdKey(place)
    const terms = { ...WITHOUT_POLLING, concurrency: 4, heartbeatInterval: 100, staleThreshold: 60_000 }
    const durably = openOn(postgres({ pool: newPool(place.url, { max }) }), terms)
    const lost: string[] = []
    durably.on('worker:lease-lost', ({ runId }) => lost.push(runId))
    durably.on('run:recover', ({ runId }) => lost.push(runId))
    const held = durably.defineJob({ name: 'held', input: z.object({}) }, () => {})
    durably.pauseJob('held')
    const many = durably.defineJob({ name: 'many', input: z.object({}) }, async (ctx) => {
      for (let n = 0; n < STEPS; n++) await ctx.run(`step ${n}`, () => n)
    })
    const runs = await many.batchTrigger(Array.from({ length: 4 }, () => ({ payload: {} })))
    let isReleased = false
    const insist = async () => {
      const trigger = () => held.trigger({}, { idempotencyKey: KEY }).catch(({ code }: { code: string }) => code)
      let answer = await trigger()
      while (!isReleased && typeof answer === 'string' && PATIENCE_OVER.test(answer)) answer = await trigger()
      return answer
    }
    const triggers = Array.from({ length: TRIGGERS }, insist)
    const most = Math.max(max - 2, 1)
    await expect.poll(() => place.query(WAITING)).toEqual([{ n: most }])
    let steps = 0
    durably.on('step:complete', () => {
      steps += 1
    })
    const beganAt = performance.now()
    durably.start()
    await Promise.all(
      runs.map(({ id }) => expect.poll(() => durably.getRun(id)).toMatchObject({ status: 'completed' })),
    )
    const seconds = (performance.now() - beganAt) / 1000
    // No commit is among those that wait, nor a renewal.
    const [waiting] = await place.query<{ readonly n: number }>(WAITING)
    expect(waiting?.n).toBeLessThanOrEqual(most)
    expect(lost).toEqual([])
    isReleased = true
    await somebody.query('commit')
    for (const answer of await Promise.all(triggers)) {
      if (typeof answer === 'string') expect(answer).toMatch(PATIENCE_OVER)
      else expect(answer).toMatchObject({ deduplicated: true })
    }
    const rate = (steps / seconds).toFixed(0)
    reportSuite({ suite: 'runs beside a held key', connections: max, waiting: most, steps, 'steps a second': rate })
  })
})

it('a pool of one connection works', async () => {
  const place = await newPlace()
  const durably = openOn(postgres({ pool: newPool(place.url, { max: 1 }), listen: false }))
  const job = durably.defineJob({ name: 'job', input: z.object({}) }, (ctx) =>
    ctx.transaction('step', async () => 'done'),
  )
  durably.start()
  expect(await job.triggerAndWait({})).toMatchObject({ output: 'done' })
})

const CREATORS = 60
const INNOCENT = 4

it('jobs that create a run with a held key keep neither steps nor other creators waiting', async () => {
  const place = await newPlace()
  const somebody = await holdKey(place)
  const terms = { concurrency: CREATORS + INNOCENT + 4, heartbeatInterval: 100, staleThreshold: 60_000 }
  const durably = place.open(terms)
  const held = durably.defineJob({ name: 'held', input: z.object({}) }, () => {})
  durably.pauseJob('held')
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const creator = durably.defineJob({ name: 'creator', input: z.object({ key: z.string() }) }, async (ctx, { key }) => {
    await ctx.run('gate', () => gate)
    await ctx.trigger('create', held, {}, { idempotencyKey: key })
  })
  const many = durably.defineJob({ name: 'many', input: z.object({}) }, async (ctx) => {
    await ctx.run('gate', () => gate)
    for (let n = 0; n < STEPS; n++) await ctx.run(`step ${n}`, () => n)
  })
  const keyOf = (n: number) => (n < CREATORS ? KEY : `free ${n}`)
  const creators = await creator.batchTrigger(
    Array.from({ length: CREATORS + INNOCENT }, (_, n) => ({ payload: { key: keyOf(n) } })),
  )
  const free = await many.batchTrigger(Array.from({ length: 4 }, () => ({ payload: {} })))
  durably.start()
  await expect.poll(async () => (await durably.counts()).running).toBe(terms.concurrency)
  goOn()
  const beganAt = performance.now()
  const secondsUntil = async (ended: Promise<unknown>) => {
    await ended
    return ((performance.now() - beganAt) / 1000).toFixed(2)
  }
  const [seconds, innocent] = await Promise.all([
    secondsUntil(Promise.all(free.map(({ id }) => many.wait(id)))),
    secondsUntil(Promise.all(creators.slice(CREATORS).map(({ id }) => creator.wait(id)))),
  ])
  const blocked = creators.slice(0, CREATORS).map(({ id }) => id)
  for (const id of blocked) expect(await creator.getRun(id)).toMatchObject({ status: 'running' })
  await somebody.query('commit')
  for (const id of blocked) await creator.wait(id)
  reportSuite({
    suite: 'jobs that create a run with a held key',
    creators: CREATORS,
    'seconds of 120 free steps': seconds,
    'seconds of others that create': innocent,
  })
})
