import { createMemoryStorage } from '@coji/durably-core/memory'
import { InvalidOptionError, StorageError, type DurablyEvent } from '@coji/durably-core'
import { createFakeClock } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { withRetention, type RetentionOptions } from '../src/index'
import { anything, instance } from './job-instance'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** An instance whose storage, engine and plugin share one clock that stands still. */
function setUp(options: RetentionOptions = {}) {
  const clock = createFakeClock()
  const storage = createMemoryStorage({ now: clock.now })
  const durably = instance({ storage, environment: { clock } }).use(withRetention({ clock, ...options }))
  const job = durably.defineJob({ name: 'job', input: anything }, (_ctx, payload) => {
    if (payload === 'fail') throw new Error('no')
  })
  async function end(...payloads: readonly string[]): Promise<string[]> {
    const runs = await job.batchTrigger(payloads.map((payload) => ({ payload })))
    await durably.runUntilIdle()
    return runs.map(({ id }) => id)
  }
  const left = async () => (await durably.getRuns()).map(({ id }) => id).reverse()
  return { clock, storage, durably, job, end, left }
}

describe('withRetention', () => {
  it('removes runs that ended longer ago than `olderThan`, soon after the start and then every so often', async () => {
    const { clock, durably, job, end, left } = setUp({ olderThan: 2 * HOUR, every: HOUR })
    await end('a')
    await clock.advance(HOUR)
    const [late] = await end('b')
    const waiting = await job.trigger('c', { delay: 9 * DAY })
    await clock.advance(HOUR)
    expect(await left()).toHaveLength(3)
    await clock.advance(HOUR)
    expect(await left()).toEqual([late, waiting.id])
    await clock.advance(HOUR)
    expect(await durably.getRuns()).toMatchObject([{ id: waiting.id, status: 'pending' }])
  })

  it('looks first a few seconds after it was installed', async () => {
    const { clock, end, left } = setUp({ olderThan: 0 })
    await end('a')
    await clock.advance(10_000)
    expect(await left()).toEqual([])
  })

  it('keeps 30 days when nothing is said', async () => {
    const { clock, end, left } = setUp()
    await end('a')
    await clock.advance(30 * DAY)
    expect(await left()).toHaveLength(1)
    await clock.advance(2 * HOUR)
    expect(await left()).toEqual([])
  })

  it('keeps a number of the newest, whatever their age, when only that is given', async () => {
    const { clock, end, left } = setUp({ keepNewest: 2 })
    const ids: string[] = []
    for (const payload of ['a', 'b', 'c', 'd']) {
      ids.push(...(await end(payload)))
      await clock.advance(1000)
    }
    await clock.advance(2 * HOUR)
    expect(await left()).toEqual(ids.slice(2))
  })

  it('removes with both what both let go', async () => {
    const { clock, end, left } = setUp({ keepNewest: 1, olderThan: DAY })
    await end('a')
    const [second] = await end('b')
    await clock.advance(HOUR)
    expect(await left()).toHaveLength(2)
    await clock.advance(DAY + HOUR)
    expect(await left()).toEqual([second])
  })

  it('removes runs of the given status only', async () => {
    const { clock, durably, end } = setUp({ olderThan: 0, status: 'completed' })
    await end('a', 'fail')
    await clock.advance(HOUR)
    expect(await durably.getRuns()).toMatchObject([{ status: 'failed' }])
  })

  it('removes old entries of the audit, as the code or the setting says', async () => {
    const { clock, durably, job } = setUp({ auditOlderThan: 2 * DAY })
    const cancel = async () =>
      durably.cancel((await job.trigger('a', { delay: 99 * DAY })).id, { as: { actor: 'ann' } })
    await cancel()
    await clock.advance(DAY)
    await cancel()
    await clock.advance(DAY + 2 * HOUR)
    expect(await durably.getAudit()).toHaveLength(1)
    await durably.settings.set({ auditRetentionDays: 1 })
    await clock.advance(2 * HOUR)
    expect(await durably.getAudit()).toHaveLength(0)
  })

  it('reports trouble as worker:error and tries again after a minute', async () => {
    const { clock, storage, durably, end, left } = setUp({ olderThan: 0 })
    const errors: DurablyEvent<'worker:error'>[] = []
    durably.on('worker:error', (event) => errors.push(event))
    await end('a')
    const { purge } = storage
    Object.assign(storage, {
      purge: () => Promise.reject(new StorageError('STORAGE_UNAVAILABLE', 'The database is away.')),
    })
    await clock.advance(10_000)
    expect(errors).toMatchObject([{ during: 'retention', error: 'The database is away.', code: 'STORAGE_UNAVAILABLE' }])
    expect(errors[0]?.workerId).toBe(durably.health().workerId)
    Object.assign(storage, { purge })
    await clock.advance(MINUTE)
    expect(await left()).toEqual([])
    expect(errors).toHaveLength(1)
  })

  it('leaves no timer behind when it is closed between two purges', async () => {
    const { clock, durably } = setUp()
    await clock.advance(2 * HOUR)
    expect(clock.pendingTimers()).toBe(1)
    await durably.close()
    expect(clock.pendingTimers()).toBe(0)
  })

  it('ends with close, after the purge in progress', async () => {
    const { clock, storage, durably } = setUp()
    let letGo = () => {}
    let isPurging = false
    Object.assign(storage, {
      purge: () => {
        isPurging = true
        return new Promise((resolve) => {
          letGo = () => resolve(0)
        })
      },
    })
    await clock.advance(10_000)
    expect(isPurging).toBe(true)
    const order: string[] = []
    const closed = durably.close().then(() => order.push('closed'))
    await clock.advance(HOUR)
    order.push('purged')
    letGo()
    await closed
    expect(order).toEqual(['purged', 'closed'])
    expect(clock.pendingTimers()).toBe(0)
  })

  it('refuses options that make no sense when it is made', () => {
    const pending = 'pending' as 'completed'
    for (const options of [
      { every: 0 },
      { olderThan: -1 },
      { olderThan: Number.NaN },
      { auditOlderThan: -1 },
      { keepNewest: 1.5 },
      { status: pending },
    ]) {
      expect(() => withRetention(options)).toThrow(InvalidOptionError)
    }
  })

  it('has a clock of its own that does not keep the process alive', async () => {
    const storage = createMemoryStorage()
    const purged = new Promise<void>((resolve) => {
      Object.assign(storage, {
        async purge() {
          resolve()
          return 0
        },
      })
    })
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    instance({ storage }).use(withRetention({ every: 1 }))
    expect(timers()).toBe(before)
    await purged
  })
})
