import { createMemoryStorage } from '@coji/durably-core/memory'
import { type Durably, type DurablyEvent, StorageError } from '@coji/durably-core'
import { createFakeClock } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { type StatisticsOptions, withStatistics } from '../src/index'
import { anything, instance } from './job-instance'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Two instances on one storage and one clock, at the beginning of an hour; `take` is how long the runs of a job take. */
function setUp(options: StatisticsOptions = {}) {
  const clock = createFakeClock()
  const storage = createMemoryStorage({ now: clock.now })
  const open = (): Durably => instance({ storage, environment: { clock } })
  const durably = open()
  const plugin = () => withStatistics({ clock, ...options })
  const mail = durably.defineJob({ name: 'mail', input: anything }, async (_ctx, payload) => {
    const { takeMs = 0, fails = false } = Object(payload) as { takeMs?: number; fails?: boolean }
    if (takeMs > 0) await new Promise<void>((done) => clock.schedule(takeMs, done))
    if (fails) throw new Error('no')
  })
  async function drain(ms = 0): Promise<void> {
    const draining = durably.runUntilIdle()
    await clock.advance(ms)
    await draining
  }
  const atTheHour = () => clock.advance(HOUR - (clock.now() % HOUR))
  return { clock, storage, durably, open, plugin, mail, drain, atTheHour }
}

describe('withStatistics', () => {
  it('counts by the hour, job and tenant how runs ended, how long they took and how long they waited', async () => {
    const { clock, durably, plugin, mail, drain, atTheHour } = setUp()
    durably.use(plugin())
    await atTheHour()
    const at = new Date(clock.now()).toISOString()
    await mail.trigger({}, { tenant: 'a' })
    await clock.advance(10 * MINUTE)
    await mail.trigger({ takeMs: MINUTE }, { tenant: 'a' })
    await mail.trigger({ fails: true }, { tenant: 'b' })
    await durably.cancel((await durably.trigger('other')).id)
    await drain(2 * MINUTE)
    await atTheHour()
    const next = new Date(clock.now()).toISOString()
    await mail.trigger({}, { tenant: 'b' })
    await drain()
    await clock.advance(2 * MINUTE)

    const counts = { started: 3, completed: 2, failed: 1, timedOut: 0, cancelled: 1 }
    const all = await durably.getStatistics()
    expect(all.countedUntil).toBe(next)
    expect(all.points).toMatchObject([
      { at, ...counts },
      { at: next, started: 1, completed: 1, failed: 0, cancelled: 0 },
    ])
    const [first] = all.points
    expect(first?.duration?.p50).toBe(0)
    expect(first?.duration?.p95).toSatisfy(within(MINUTE))
    // The first waited for ten minutes, the last for the one before it.
    expect(first?.queueLatency?.p95).toSatisfy(within(10 * MINUTE))
    expect(all.total).toMatchObject({ ...counts, started: 4, completed: 3 })

    const ofMail = await durably.getStatistics({ jobName: 'mail', interval: 'day' })
    expect(ofMail.points).toMatchObject([{ at: at.replace(/T.*/, 'T00:00:00.000Z'), started: 4, cancelled: 0 }])
    expect((await durably.scoped({ tenant: 'b' }).getStatistics()).total).toMatchObject({ completed: 1, failed: 1 })
    expect((await durably.getStatistics({ tenant: 'c' })).total).toMatchObject({ started: 0, duration: null })
  })

  it('counts each end once, however many look, goes on after a stop, and keeps what was purged', async () => {
    const { clock, durably, open, plugin, mail, drain } = setUp()
    const others = [open(), open()]
    for (const other of others) other.use(plugin())
    await mail.batchTrigger(Array.from({ length: 700 }, () => ({ payload: {} })))
    await drain()
    await clock.advance(MINUTE)
    for (const other of others) await other.close()
    expect((await durably.getStatistics()).total).toMatchObject({ completed: 700 })
    await mail.batchTrigger(Array.from({ length: 1200 }, () => ({ payload: {} })))
    await drain()
    await clock.advance(HOUR)
    expect((await durably.getStatistics()).total).toMatchObject({ completed: 700 })
    durably.use(plugin())
    await clock.advance(MINUTE)
    await durably.purge({ olderThan: 0 })
    await clock.advance(MINUTE)
    expect((await durably.getStatistics()).total).toMatchObject({ started: 1900, completed: 1900 })
  })

  it('leaves out how long a run waited that nobody can know', async () => {
    const { clock, durably, plugin, mail, drain } = setUp()
    durably.use(plugin())
    const retrying = durably.defineJob({ name: 'retrying', input: anything }, (ctx) => ctx.sleep('nap', 5 * SECOND))
    await retrying.trigger({}, { delay: MINUTE })
    await clock.advance(MINUTE)
    await drain(10 * SECOND)
    await clock.advance(10 * SECOND)
    await drain()
    const { id } = await mail.trigger({ fails: true })
    await drain()
    await durably.retry(id)
    await clock.advance(HOUR)
    await drain()
    await clock.advance(MINUTE)
    const { total } = await durably.getStatistics()
    expect(total).toMatchObject({ started: 1, completed: 1, failed: 1, queueLatency: null })
    expect(total.duration?.p50).toSatisfy(within(20 * SECOND))
  })

  it('forgets hours after 90 days, or after as long as it is told', async () => {
    const { clock, durably, plugin, mail, drain } = setUp({ keepFor: 2 * DAY })
    durably.use(plugin())
    for (let day = 0; day < 4; day++) {
      await mail.trigger({})
      await drain()
      await clock.advance(DAY)
    }
    expect((await durably.getStatistics({ from: new Date(0) })).total).toMatchObject({ completed: 3 })
  })

  it('tells of trouble and goes on a minute later', async () => {
    const { clock, storage, durably, plugin, mail, drain } = setUp()
    const { fold } = storage.statistics
    let failures = 1
    Object.assign(storage.statistics, {
      fold: (...given: Parameters<typeof fold>) =>
        failures-- > 0 ? Promise.reject(new StorageError('STORAGE_UNAVAILABLE', 'away')) : fold(...given),
    })
    const errors: DurablyEvent<'worker:error'>[] = []
    durably.on('worker:error', (event) => errors.push(event))
    durably.use(plugin())
    await mail.trigger({})
    await drain()
    await clock.advance(MINUTE)
    expect(errors).toMatchObject([{ during: 'statistics', error: 'away' }])
    expect((await durably.getStatistics()).countedUntil).toBeNull()
    await clock.advance(MINUTE)
    expect((await durably.getStatistics()).total).toMatchObject({ completed: 1 })
  })

  it('refuses what makes no sense, and a storage that cannot', async () => {
    expect(() => withStatistics({ every: 0 })).toThrow('every')
    expect(() => withStatistics({ keepFor: -1 })).toThrow('keepFor')
    const { statistics: _, ...poor } = createMemoryStorage()
    expect(() => instance({ storage: poor }).use(withStatistics())).toThrow('Plugin "statistics"')
    await expect(instance({ storage: poor }).getStatistics()).rejects.toMatchObject({ code: 'CAPABILITY_MISSING' })
    await expect(instance().getStatistics({ interval: 'week' as 'day' })).rejects.toThrow('interval')
    await expect(instance().getStatistics({ from: 'yesterday' })).rejects.toThrow('from')
  })
})

/** A percentile is off by 9 % at most. */
function within(ms: number): (found: number) => boolean {
  return (found) => found > 0.91 * ms && found < 1.1 * ms
}
