import { PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import type { SqlDurably } from '../../src/index'
import { withLogPersistence } from '../../src/plugins'
import { openOn } from '../instances'
import { newPlace, newSession, type Place, WITHOUT_POLLING } from './kit'

/** Polling would take an hour. */
const AT_ONCE_MS = PATIENCE_MS

function within<T>(work: Promise<T>): Promise<T> {
  const tooLate = new Promise<never>((_, reject) => setTimeout(() => reject(new Error('too late')), AT_ONCE_MS))
  return Promise.race([work, tooLate])
}

function defineGreet(durably: SqlDurably) {
  return durably.defineJob({ name: 'greet', input: z.object({ who: z.string() }) }, (ctx, { who }) =>
    ctx.run('say', () => `hello ${who}`),
  )
}

/** An instance that triggers, and another one that works and already listens. */
async function openBoth(place: Place) {
  const api = place.open()
  const worker = place.open()
  const greet = defineGreet(api)
  defineGreet(worker)
  const completed: string[] = []
  worker.on('run:complete', ({ runId }) => completed.push(runId))
  worker.start()
  await expect.poll(() => place.listeners()).toHaveLength(1)
  const isDone = (id: string) => expect.poll(() => completed, { timeout: AT_ONCE_MS, interval: 5 }).toContain(id)
  return { api, worker, greet, completed, isDone }
}

const SAMPLES = scaled({ quick: 40, full: 400 })

describe('two instances on one Postgres', () => {
  it('a run of the other is begun while a trigger of its own waits for a held key', async () => {
    const place = await newPlace()
    const { api, worker, greet, isDone } = await openBoth(place)
    const held = api.defineJob({ name: 'held', input: z.object({}) }, () => {})
    const keyed = worker.defineJob({ name: 'held', input: z.object({}) }, () => {})
    worker.pauseJob('held')
    const { id } = await held.trigger({})
    const somebody = await newSession(place.url)
    await somebody.query('begin')
    await somebody.query(`update durably_runs set idempotency_key = 'taken' where id = $1`, [id])
    // Who waits for the row gives up after a while, and comes again.
    let [tries, isReleased] = [0, false]
    const settled = (async () => {
      for (; !isReleased; tries++) await keyed.trigger({}, { idempotencyKey: 'taken' }).catch(() => {})
    })()
    const waits = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like '%durably_runs%'`
    const isDoneMeanwhile = async () => {
      const before = tries
      if ((await place.query(waits)).length !== 1) return false
      await isDone((await greet.trigger({ who: 'ada' })).id)
      // The end of a try would wake the worker as well.
      return tries === before
    }
    try {
      await expect.poll(isDoneMeanwhile).toBe(true)
    } finally {
      isReleased = true
    }
    await somebody.query('rollback')
    await settled
  })

  it('a trigger in one begins in the other within milliseconds', async () => {
    const { greet, worker, isDone } = await openBoth(await newPlace())
    let begunAt = 0
    worker.on('run:start', () => {
      begunAt = performance.now()
    })
    const [latencies, sinceStored]: [number[], number[]] = [[], []]
    for (let sample = 0; sample < SAMPLES; sample++) {
      const askedAt = performance.now()
      const { id } = await greet.trigger({ who: 'ada' })
      const storedAt = performance.now()
      await isDone(id)
      latencies.push(begunAt - askedAt)
      sinceStored.push(Math.max(begunAt - storedAt, 0))
      // Until what its end had to tell is told.
      await new Promise((resolve) => setTimeout(resolve, 60))
    }
    const medianOf = (times: number[]) => (times.sort((a, b) => a - b)[SAMPLES / 2] ?? Number.NaN).toFixed(1)
    reportSuite({
      suite: 'from trigger to another process',
      samples: SAMPLES,
      medianMs: medianOf(latencies),
      'of it once stored': medianOf(sinceStored),
    })
  })

  it('a trigger in one wakes the worker of the other at once', async () => {
    const { greet, isDone } = await openBoth(await newPlace())
    for (const who of ['ada', 'grace']) await isDone((await greet.trigger({ who })).id)
  })

  it('so does one in a transaction of the caller, once it is committed and not before', async () => {
    const { api, greet, completed, isDone } = await openBoth(await newPlace())
    const own = await api.transaction(async (transaction) => {
      const { id } = await greet.trigger({ who: 'ada' }, { transaction })
      // Another run goes through meanwhile: had the worker been able to see the first one, it would have taken it.
      await isDone((await greet.trigger({ who: 'grace' })).id)
      expect(completed).not.toContain(id)
      return id
    })
    await isDone(own)
    const ofTheApplication = await api.db
      .transaction()
      .execute(async (transaction) => (await greet.trigger({ who: 'mary' }, { transaction })).id)
    await isDone(ofTheApplication)
  })

  it('one that is rolled back tells nobody', async () => {
    const place = await newPlace()
    const { api, greet, isDone } = await openBoth(place)
    const heard: string[] = []
    const session = await newSession(place.url)
    session.on('notification', ({ payload = '' }) => heard.push(payload))
    await session.query('listen "durably:durably_"')
    const rolledBack = api.db.transaction().execute(async (transaction) => {
      await greet.trigger({ who: 'nobody' }, { transaction })
      throw new Error('no stock')
    })
    await expect(rolledBack).rejects.toThrow('no stock')
    await place.query("select pg_notify('durably:durably_', 'the end')")
    await expect.poll(() => heard).toContain('the end')
    expect(heard).toEqual(['the end'])
    await isDone((await greet.trigger({ who: 'ada' })).id)
    expect(await api.getRuns()).toHaveLength(1)
  })

  it('a listener whose session is killed comes back, and has missed nothing', async () => {
    const place = await newPlace()
    const { greet, isDone } = await openBoth(place)
    for (let round = 0; round < 3; round++) {
      const [pid] = await place.listeners()
      expect(await place.query('select pg_terminate_backend($1) as killed', [pid])).toEqual([{ killed: true }])
      await isDone((await greet.trigger({ who: `round ${round}` })).id)
      await expect.poll(() => place.listeners(), { timeout: AT_ONCE_MS }).toEqual([expect.any(Number)])
      expect(await place.listeners()).not.toContain(pid)
    }
  })

  it('one channel for each prefix: instances on other tables are left in peace', async () => {
    const place = await newPlace()
    const { greet, isDone } = await openBoth(place)
    const other = place.open({ tablePrefix: 'other_' })
    await other.migrate()
    const heard: string[] = []
    const session = await newSession(place.url)
    session.on('notification', ({ channel }) => heard.push(channel))
    await session.query('listen "durably:other_"')
    await isDone((await greet.trigger({ who: 'ada' })).id)
    await defineGreet(other).trigger({ who: 'grace' })
    await expect.poll(() => heard).toEqual(['durably:other_'])
  })

  it('text of others on the channel is no trouble', async () => {
    const place = await newPlace()
    const { worker, greet, isDone } = await openBoth(place)
    const troubles: string[] = []
    worker.on('worker:error', ({ error }) => troubles.push(error))
    for (const text of ['', 'null', '{', '{"runs":7,"due":"yes"}', '{"runs":[null,{}],"due":true}']) {
      await place.query("select pg_notify('durably:durably_', $1)", [text])
    }
    await isDone((await greet.trigger({ who: 'ada' })).id)
    expect(troubles).toEqual([])
  })
})

describe('without LISTEN', () => {
  it.each([
    ['postgres({ listen: false })', (place: Place) => place.open({ listen: false, pollingInterval: 30 })],
    [
      'a bare PostgresDialect',
      (place: Place) => {
        const pool = new pg.Pool({ connectionString: place.url })
        return openOn(new PostgresDialect({ pool }), { ...WITHOUT_POLLING, pollingInterval: 30 })
      },
    ],
  ])('%s finds runs by polling', async (_name, open) => {
    const place = await newPlace()
    const worker = open(place)
    const done = new Promise((resolve) => worker.on('run:complete', ({ runId }) => resolve(runId)))
    const greet = defineGreet(place.open({ listen: false }))
    defineGreet(worker)
    worker.start()
    const { id } = await greet.trigger({ who: 'ada' })
    expect(await done).toBe(id)
    expect(await place.listeners()).toEqual([])
  })
})

describe('an instance without a worker', () => {
  it('hears of the end of a run it waits for', async () => {
    const place = await newPlace()
    const { api, worker } = await openBoth(place)
    const input = z.object({})
    worker.defineJob({ name: 'patient', input }, (ctx) => ctx.waitFor('go'))
    const patient = api.defineJob({ name: 'patient', input }, (): unknown => 'never here')
    const { id } = await patient.trigger({})
    const ended = patient.wait(id)
    await expect.poll(() => place.listeners()).toHaveLength(2)
    await api.signal(id, 'go', 'gone')
    await expect(within(ended)).resolves.toEqual({ id, output: 'gone' })
  })

  it('hears of the events of a run it follows', async () => {
    const place = await newPlace()
    const { api, worker } = await openBoth(place)
    worker.use(withLogPersistence())
    const job = worker.defineJob({ name: 'patient', input: z.object({}) }, (ctx) => ctx.waitFor('go'))
    const { id } = await job.trigger({})
    const reader = api.subscribe(id).getReader()
    expect(await reader.read()).toMatchObject({ value: { seq: 1, type: 'run:trigger' } })
    await expect.poll(() => place.listeners()).toHaveLength(2)
    await reader.cancel()
  })

  it('does not listen as long as it waits for nothing', async () => {
    const place = await newPlace()
    const api = place.open()
    await defineGreet(api).trigger({ who: 'ada' })
    await api.getRuns()
    await sql`select 1`.execute(api.db)
    expect(await place.listeners()).toEqual([])
  })
})
