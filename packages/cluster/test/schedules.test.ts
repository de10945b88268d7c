import { defineJob } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import type { ClusterStorage, DueSchedule } from '@coji/durably-core/storage'
import { createFakeClock } from '@coji/durably-core/testing'
import { describe, expect, it } from 'vitest'
import { at, DAY, HOUR, instantsOf, MINUTE, pass, schemaOf, stage, START, withStaleLeads } from './stage'

/** After so long no heartbeat is due, of which a worker would hear as well. */
const BESIDE_BEATS = HOUR + 1
const BUSY = { kept: false, isBusy: true, created: [], ended: [] }
const REPORT = { job: 'report', payload: { for: 'boss' } } as const

describe('a schedule', () => {
  it('fires at the instants of its pattern, by the clocks of its zone', async () => {
    const own = stage()
    own.schedules.define('nightly', { ...REPORT, cron: '0 2 * * *', zone: 'Asia/Tokyo' })
    await pass(own, 3 * DAY)
    expect(await instantsOf(own)).toEqual([at(17 * HOUR), at(DAY + 17 * HOUR), at(2 * DAY + 17 * HOUR)])
    expect(own.executed).toEqual([{ for: 'boss' }, { for: 'boss' }, { for: 'boss' }])
    expect(own.told[0]).toMatchObject({ scheduleName: 'nightly', jobName: 'report', scheduledFor: at(17 * HOUR) })
  })

  it('fires every so many milliseconds, from its creation or its start on', async () => {
    const own = stage()
    own.durably.start()
    await own.schedules.create('often', { ...REPORT, every: 20 * MINUTE })
    await own.schedules.create('later', { ...REPORT, every: 20 * MINUTE, start: new Date(at(50 * MINUTE)) })
    await own.clock.advance(HOUR)
    expect((await instantsOf(own)).sort()).toEqual([20, 40, 50, 60].map((minute) => at(minute * MINUTE)))
    await own.durably.close()
  })

  it('fires once, and has ended', async () => {
    const own = stage()
    await own.schedules.create('reminder', { ...REPORT, at: at(HOUR) })
    await pass(own, DAY)
    expect(await instantsOf(own)).toEqual([at(HOUR)])
    expect(await own.schedules.get('reminder')).toMatchObject({ nextAt: null, firedCount: 1 })
    expect(await own.schedules.explain('reminder')).toContain('has ended')
  })

  it.each([
    ['ahead', HOUR],
    ['behind', -HOUR],
  ])('goes by the clock of the storage, also of a process that is %s', async (_where, offset) => {
    const clock = createFakeClock(START)
    const processClock = { ...clock, now: () => clock.now() + offset }
    const own = stage({ clock: processClock, storage: createMemoryStorage({ now: () => clock.now() }) })
    const { schedules } = own
    await schedules.create('in a minute', { ...REPORT, at: at(MINUTE) })
    await schedules.create('until then', { ...REPORT, every: MINUTE, end: at(2 * MINUTE) })
    await schedules.create('hourly', { ...REPORT, cron: '0 * * * *' })
    await schedules.create('changed', { ...REPORT, every: HOUR })
    await schedules.update('changed', { every: undefined, at: at(MINUTE) })
    for (const past of [{ at: at(-MINUTE) }, { every: MINUTE, end: at(-MINUTE) }]) {
      await expect(schedules.create('over', { ...REPORT, ...past })).rejects.toThrow('its time is over')
      await expect(schedules.update('until then', past)).rejects.toThrow('its time is over')
    }
    schedules.define('coded', { ...REPORT, at: at(MINUTE) })
    schedules.define('coded too late', { ...REPORT, at: at(-MINUTE) })
    await schedules.tick()
    const names = (await schedules.list()).map(({ name }) => name)
    expect(names.sort()).toEqual(['changed', 'coded', 'hourly', 'in a minute', 'until then'])

    const shown = [await schedules.preview({ cron: '0 * * * *' }, 1), await schedules.preview('until then', 1)]
    expect(shown.flat().map((each) => each.toISOString())).toEqual([at(HOUR), at(MINUTE)])
    await expect(schedules.backfill('hourly', { from: at(0), to: at(MINUTE) })).rejects.toThrow('past')
    expect(await schedules.backfill('hourly', { from: at(-HOUR), to: at(0) })).toHaveLength(1)
    await clock.stall(MINUTE)
    expect(await schedules.tick()).toEqual({ fired: 4 })
  })

  it('fires no more after the last instant that is kept', async () => {
    const own = stage()
    const timing = { every: DAY, start: '9999-12-31T12:00:00Z' }
    expect(await own.schedules.preview(timing, 3)).toEqual([new Date(timing.start)])
  })

  it('fires no more after its end', async () => {
    const own = stage()
    await own.schedules.create('trial', { ...REPORT, every: HOUR, end: at(2 * HOUR) })
    await pass(own, DAY)
    expect(await instantsOf(own)).toEqual([at(HOUR), at(2 * HOUR)])
    expect((await own.schedules.get('trial'))?.endedAt).not.toBeNull()
  })

  it('has runs with its labels, its tenant and its priority', async () => {
    const own = stage()
    own.durably.start()
    const labels = { team: 'a' }
    const { id } = await own.schedules.create('x', { ...REPORT, every: HOUR, tenant: 'acme', labels, priority: 3 })
    await own.clock.advance(HOUR)
    const [run] = await own.durably.getRuns({ labels, tenant: 'acme' })
    expect(run).toMatchObject({ labels, tenant: 'acme', priority: 3, scheduleId: id, scheduledFor: at(HOUR) })
    await own.durably.close()
  })

  it('moves its runs by chance', async () => {
    const own = stage()
    own.durably.start()
    await own.schedules.create('x', { ...REPORT, every: HOUR, jitter: 10_000 })
    await own.clock.advance(HOUR)
    expect(await own.durably.getRuns()).toMatchObject([{ availableAt: at(HOUR + 5000), scheduledFor: at(HOUR) }])
    await own.durably.close()
  })

  it('fires for a job that this process does not know', async () => {
    const first = stage()
    await first.schedules.create('x', { ...REPORT, every: HOUR })
    const { clock, storage } = first
    const other = stage({ clock, storage })
    await first.durably.stop()
    const { createDurably } = await import('@coji/durably-core')
    const { createScheduler } = await import('../src/index')
    const stranger = createDurably({ storage, logger: null, environment: { clock } })
    const schedules = createScheduler(stranger)
    await clock.advance(HOUR)
    expect(await schedules.tick()).toEqual({ fired: 1 })
    expect(other.executed).toEqual([])
    await other.durably.runUntilIdle()
    expect(other.executed).toEqual([{ for: 'boss' }])
  })
})

describe('what was missed', () => {
  /** Nobody looks for two and a half days and some minutes. */
  async function asleep(missed?: 'skip' | 'latest' | { all: true; max: number }) {
    const own = stage()
    own.durably.start()
    await own.schedules.create('daily', { ...REPORT, cron: '0 2 * * *', missed })
    await own.clock.advance(HOUR)
    await own.clock.stall(2 * DAY + 90 * MINUTE)
    await own.clock.advance(MINUTE)
    const instants = await instantsOf(own)
    await own.durably.close()
    return { instants, told: own.told.filter((event) => Object(event).type === 'schedule:missed') }
  }
  const [one, two, three] = [2 * HOUR, DAY + 2 * HOUR, 2 * DAY + 2 * HOUR].map(at)

  it('is made up for once', async () => {
    const { instants, told } = await asleep()
    expect(instants).toEqual([three])
    expect(told).toEqual([
      expect.objectContaining({ scheduleName: 'daily', from: one, to: two, count: 2, because: 'late' }),
    ])
  })

  it('is skipped', async () => {
    const { instants, told } = await asleep('skip')
    expect(instants).toEqual([])
    expect(told).toMatchObject([{ from: one, to: three, count: 3 }])
  })

  it('is made up for as often as is asked for', async () => {
    expect((await asleep({ all: true, max: 2 })).instants).toEqual([two, three])
    expect((await asleep({ all: true, max: 9 })).instants).toEqual([one, two, three])
  })

  it('is counted up to a thousand, however long it was', async () => {
    const own = stage()
    await own.schedules.create('x', { ...REPORT, cron: '* * * * *' })
    await own.schedules.tick()
    await own.clock.stall(3000 * DAY)
    expect(await own.schedules.tick()).toEqual({ fired: 1 })
    expect((await own.schedules.get('x'))?.missedCount).toBeGreaterThan(900)
  })
})

/** The first run of a schedule waits for something, and the second instant has come. */
async function stageWithOpenRun() {
  const own = stage()
  await own.schedules.create('x', { job: 'slow', payload: 1, every: HOUR, overlap: 'cancel' })
  await own.schedules.tick()
  await own.clock.stall(HOUR)
  await own.schedules.tick()
  await own.clock.stall(HOUR)
  return own
}

describe('a run that goes on', () => {
  it('is not cancelled by who has lost the lead', async () => {
    const own = await stageWithOpenRun()
    const restore = withStaleLeads(own.storage)
    expect(await own.schedules.tick()).toEqual({ fired: 0 })
    expect(await own.durably.getRuns()).toMatchObject([{ scheduledFor: at(HOUR), status: 'pending' }])
    restore()
    expect(await own.schedules.tick()).toEqual({ fired: 1 })
  })

  it('is cancelled by the firing itself, whatever becomes of who fires right after it', async () => {
    const own = await stageWithOpenRun()
    // Nothing else of it arrives.
    Object.assign(own.storage, { command: () => Promise.reject(new Error('gone')) })
    await own.schedules.tick().catch(() => {})
    const runs = await own.storage.getRuns({})
    expect(runs.map(({ scheduledFor, status }) => [scheduledFor, status]).sort()).toEqual([
      [at(HOUR), 'cancelled'],
      [at(2 * HOUR), 'pending'],
    ])
  })

  it('is not cancelled where it is that of the very instant, which somebody has made up for', async () => {
    const own = stage()
    await own.schedules.create('x', { job: 'slow', payload: 1, every: HOUR, overlap: 'cancel' })
    await own.schedules.tick()
    await own.clock.stall(HOUR + MINUTE)
    const ids = await own.schedules.backfill('x', { from: at(HOUR), to: at(HOUR + 1) })
    expect(await own.schedules.tick()).toEqual({ fired: 0 })
    expect((await own.durably.getRuns()).map((run) => [run.id, run.status])).toEqual([[ids[0], 'pending']])
  })

  it('is told of as cancelled, and keeps no other one from firing while somebody has locked it', async () => {
    const own = stage()
    for (const name of ['locked', 'x']) {
      await own.schedules.create(name, { job: 'slow', payload: name, every: HOUR, overlap: 'cancel' })
    }
    await own.schedules.tick()
    await own.clock.stall(HOUR)
    await own.schedules.tick()
    await own.clock.stall(HOUR)
    const cancelled: unknown[] = []
    own.durably.on('run:cancel', ({ requested }) => void cancelled.push(requested))
    const storage = own.storage.cluster?.schedules ?? ({} as never)
    const { fire } = storage
    const locked = (await storage.get({ tenant: '', name: 'locked' }))?.schedule.id
    Object.assign(storage, {
      fire: async (...[lead, firings, events]: Parameters<typeof fire>) => {
        const free = firings.filter(({ scheduleId }) => scheduleId !== locked)
        const answers = [...(await fire(lead, free, events))]
        return firings.map((firing) => (free.includes(firing) ? answers.shift() : BUSY))
      },
    })
    expect(await own.schedules.tick()).toEqual({ fired: 1 })
    expect([cancelled, own.errors]).toEqual([[false], [expect.stringContaining('A schedule waits')]])
    own.durably.start()
    await own.clock.advance(0)
    Object.assign(storage, { fire })
    await own.clock.advance(1000)
    expect(cancelled).toEqual([false, false])
    await own.durably.close()
  })

  it('ends at once where it only hears of its cancel', async () => {
    const own = stage()
    own.durably.register({
      stubborn: defineJob({ name: 'stubborn', input: schemaOf<unknown>() }, async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      }),
    })
    own.durably.start()
    await own.schedules.create('x', { job: 'stubborn', payload: 1, every: BESIDE_BEATS, overlap: 'cancel' })
    await own.clock.advance(2 * BESIDE_BEATS)
    expect((await own.durably.getRuns()).reverse()).toMatchObject([
      { status: 'cancelled', scheduledFor: at(BESIDE_BEATS), finishedAt: at(2 * BESIDE_BEATS) },
      { status: 'running', scheduledFor: at(2 * BESIDE_BEATS) },
    ])
    await own.schedules.remove('x')
    for (const { id } of await own.durably.getRuns({ status: 'running' })) await own.durably.cancel(id)
    await own.durably.close()
  })

  it('makes way for the last of several instants, and the others are missed', async () => {
    const own = stage()
    const missed = { all: true, max: 24 } as const
    await own.schedules.create('x', { job: 'slow', payload: 1, every: HOUR, overlap: 'cancel', missed })
    await own.schedules.tick()
    await own.clock.stall(HOUR)
    await own.schedules.tick()
    await own.clock.stall(5 * HOUR)
    expect(await own.schedules.tick()).toEqual({ fired: 1 })
    expect((await own.durably.getRuns()).map(({ scheduledFor, status }) => [scheduledFor, status])).toEqual([
      [at(6 * HOUR), 'pending'],
      [at(HOUR), 'cancelled'],
    ])
    expect(own.told).toContainEqual(
      expect.objectContaining({ from: at(2 * HOUR), to: at(5 * HOUR), count: 4, because: 'overlap' }),
    )
    expect(await own.schedules.get('x')).toMatchObject({ firedCount: 2, missedCount: 4 })
  })

  async function overlapping(overlap: 'allow' | 'skip' | 'queue' | 'cancel') {
    const own = stage()
    own.durably.start()
    await own.schedules.create('x', { job: 'slow', payload: 1, every: HOUR, overlap })
    await own.clock.advance(2 * HOUR + MINUTE)
    const runs = (await own.durably.getRuns()).reverse()
    const explanation = await own.schedules.explain('x')
    await own.durably.close()
    return { runs, explanation, told: own.told }
  }

  it('has another one beside it', async () => {
    const { runs } = await overlapping('allow')
    expect(runs.map(({ status, startedAt }) => [status, startedAt !== null])).toEqual([
      ['pending', true],
      ['pending', true],
    ])
  })

  it('has the instant skipped', async () => {
    const { runs, told, explanation } = await overlapping('skip')
    expect(runs.map(({ scheduledFor }) => scheduledFor)).toEqual([at(HOUR)])
    expect(told.at(-1)).toMatchObject({ from: at(2 * HOUR), to: at(2 * HOUR), count: 1, because: 'overlap' })
    expect(explanation).toContain(`Held back by run ${runs[0]?.id}`)
    expect(explanation).toContain(`fires next at ${at(3 * HOUR)}, because it fires every ${HOUR} ms`)
  })

  it('has the next one wait', async () => {
    const { runs } = await overlapping('queue')
    expect(runs.map(({ startedAt }) => startedAt !== null)).toEqual([true, false])
  })

  it('is cancelled', async () => {
    const { runs } = await overlapping('cancel')
    expect(runs.map(({ status }) => status)).toEqual(['cancelled', 'pending'])
    expect(runs[1]?.startedAt).not.toBeNull()
  })
})

describe('the code', () => {
  it('changes what is stored, and pauses what it no longer has', async () => {
    const first = stage()
    first.schedules.define('stays', { ...REPORT, every: HOUR })
    first.schedules.define('changes', { ...REPORT, every: HOUR })
    first.schedules.define('leaves', { ...REPORT, every: HOUR })
    await first.schedules.tick()
    await first.schedules.create('by hand', { ...REPORT, every: HOUR })
    await first.clock.advance(10 * MINUTE)

    const { clock, storage } = first
    const second = stage({ clock, storage })
    second.schedules.define('stays', { job: 'report', payload: { for: 'all' }, every: HOUR })
    second.schedules.define('changes', { ...REPORT, every: 2 * HOUR })
    await second.schedules.tick()
    const byName = async () => Object.fromEntries((await second.schedules.list()).map((each) => [each.name, each]))
    expect(await byName()).toMatchObject({
      stays: { payload: { for: 'all' }, firedUntil: at(0), nextAt: at(HOUR), pausedBecause: null, source: 'app' },
      changes: { timing: { ms: 2 * HOUR }, firedUntil: at(10 * MINUTE), pausedBecause: null },
      leaves: { pausedBecause: 'it left the code', nextAt: at(HOUR) },
      'by hand': { pausedBecause: null, source: null },
    })
    await clock.advance(DAY)

    const third = stage({ clock, storage })
    for (const name of ['stays', 'changes', 'leaves']) third.schedules.define(name, { ...REPORT, every: HOUR })
    await third.schedules.tick()
    expect((await byName())['leaves']).toMatchObject({ pausedBecause: null, firedUntil: at(DAY + 10 * MINUTE) })
  })

  /** An old process has `stays` and `leaves`; a new one has another `stays` alone, and has stored nothing yet. */
  async function stageDeploy() {
    const old = stage()
    for (const name of ['stays', 'leaves']) old.schedules.define(name, { ...REPORT, every: HOUR })
    await old.schedules.tick()
    const { clock, storage } = old
    const own = stage({ clock, storage })
    own.schedules.define('stays', { job: 'report', payload: { for: 'all' }, every: 2 * HOUR })
    return { old, own, stored: (storage.cluster as ClusterStorage).schedules }
  }

  it('is stored although the schedules fire while it goes through them', async () => {
    const { old, own, stored } = await stageDeploy()
    await own.clock.stall(HOUR)
    const { list } = stored
    const listThenFire: typeof list = async (query) => {
      const listed = await list(query)
      await old.schedules.tick()
      return listed
    }
    Object.assign(stored, { list: listThenFire })
    await own.schedules.tick()
    expect((await instantsOf(own)).length).toBe(2)
    expect(await list({})).toMatchObject([
      { name: 'leaves', pausedBecause: 'it left the code' },
      { name: 'stays', payload: '{"for":"all"}', pausedBecause: null },
    ])
    expect(await own.schedules.get('stays')).toMatchObject({ timing: { ms: 2 * HOUR } })
  })

  it('is stored later where the schedules never stay as they were read', async () => {
    const { own, stored } = await stageDeploy()
    const { list } = stored
    let looks = 0
    const listThenChange: typeof list = async (query) => {
      looks += 1
      const listed = await list(query)
      for (const { tenant, name } of listed) await stored.change({ tenant, name, isAnew: false })
      return listed
    }
    Object.assign(stored, { list: listThenChange })
    own.schedules.define('too late', { ...REPORT, at: at(-HOUR) })
    await expect(own.schedules.tick()).rejects.toMatchObject({ code: 'STORAGE_BUSY' })
    expect([looks, own.errors]).toEqual([5, []])
    Object.assign(stored, { list })
    await own.schedules.tick()
    expect(await own.schedules.get('stays')).toMatchObject({ payload: { for: 'all' } })
    expect(own.errors).toEqual([expect.stringContaining('Schedule "too late" would never fire')])
  })

  it.each([{ at: at(MINUTE) }, { every: MINUTE, end: at(MINUTE) }])(
    'leaves a schedule as it was that would never fire any more by it, and says so: %j',
    async (past) => {
      const first = stage()
      first.schedules.define('x', { ...REPORT, every: HOUR })
      await first.schedules.tick()
      const before = await first.schedules.get('x')
      const { clock, storage } = first
      await clock.stall(2 * MINUTE)
      const second = stage({ clock, storage })
      second.schedules.define('x', { ...REPORT, ...past })
      await second.schedules.tick()
      expect(await second.schedules.get('x')).toEqual(before)
      expect(second.errors).toEqual(['Schedule "x" would never fire: its time is over. Nothing was stored.'])
    },
  )

  it('does not fire a one-off that passed while it was away', async () => {
    const first = stage()
    first.schedules.define('launch', { ...REPORT, at: at(HOUR) })
    await first.schedules.tick()
    const { clock, storage } = first
    const second = stage({ clock, storage })
    second.schedules.define('other', { ...REPORT, at: at(DAY) })
    await second.schedules.tick()
    await clock.stall(2 * HOUR)
    const third = stage({ clock, storage })
    third.schedules.define('launch', { ...REPORT, at: at(HOUR) })
    await third.schedules.tick()
    expect(await third.schedules.get('launch')).toMatchObject({ pausedBecause: null, endedAt: at(2 * HOUR) })
    expect(await instantsOf(third)).toEqual([])
  })

  it('is left alone by who defines nothing and does not say whose code it is', async () => {
    const first = stage()
    first.schedules.define('x', { ...REPORT, every: HOUR })
    await first.schedules.tick()
    const { clock, storage } = first
    const client = stage({ clock, storage })
    await client.schedules.create('by hand', { ...REPORT, every: HOUR })
    await client.schedules.tick()
    expect(await client.schedules.get('x')).toMatchObject({ pausedBecause: null })
    const emptied = stage({ clock, storage, source: 'app' })
    await emptied.schedules.tick()
    expect(await emptied.schedules.get('x')).toMatchObject({ pausedBecause: 'it left the code' })
  })

  it('leaves schedules of other code alone', async () => {
    const first = stage({ source: 'billing' })
    first.schedules.define('invoices', { ...REPORT, every: HOUR })
    await first.schedules.tick()
    const second = stage({ clock: first.clock, storage: first.storage, source: 'mails' })
    second.schedules.define('invoices', { ...REPORT, every: MINUTE })
    await second.schedules.tick()
    expect(await first.schedules.list()).toMatchObject([
      { source: 'billing', pausedBecause: null, timing: { ms: HOUR } },
    ])
    expect(second.errors).toEqual([
      'There is a schedule "invoices" already, by the code of "billing". Give one of them another name.',
    ])
  })

  it('does not resume what was paused by hand', async () => {
    const own = stage()
    own.schedules.define('x', { ...REPORT, every: HOUR })
    await own.schedules.tick()
    await own.schedules.pause('x', { because: 'the printer is broken' })
    const again = stage({ clock: own.clock, storage: own.storage })
    again.schedules.define('x', { ...REPORT, every: MINUTE })
    await own.clock.advance(DAY)
    await again.schedules.tick()
    expect(await again.schedules.explain('x')).toContain('is paused: the printer is broken')
    expect(await instantsOf(own)).toEqual([])
  })

  it('may still define a one-off that has passed', async () => {
    const own = stage()
    own.schedules.define('launch', { ...REPORT, at: at(HOUR) })
    await own.schedules.tick()
    await own.clock.advance(2 * HOUR)
    await own.schedules.tick()
    const again = stage({ clock: own.clock, storage: own.storage })
    again.schedules.define('launch', { ...REPORT, at: at(HOUR) })
    again.schedules.define('too late', { ...REPORT, at: at(HOUR) })
    await again.schedules.tick()
    expect(await instantsOf(again)).toEqual([at(HOUR)])
    expect(again.errors).toEqual(['Schedule "too late" would never fire: its time is over. Nothing was stored.'])
    expect(await again.schedules.list()).toMatchObject([{ name: 'launch', firedCount: 1 }])
  })
})

describe('by hand', () => {
  it('a schedule is changed, and its new instants count from then on', async () => {
    const own = stage()
    own.durably.start()
    const options = { ...REPORT, cron: '30 * * * *', zone: 'Asia/Kolkata', labels: { a: 'b' }, priority: 2 } as const
    await own.schedules.create('x', { ...options, missed: { all: true, max: 5 } })
    await own.clock.advance(10 * MINUTE)
    const changed = await own.schedules.update('x', { cron: '0 * * * *', payload: { for: 'us' } })
    expect(changed).toMatchObject({
      timing: { kind: 'cron', cron: '0 * * * *', zone: 'Asia/Kolkata' },
      ...{ payload: { for: 'us' }, labels: { a: 'b' }, priority: 2, missed: { all: true, max: 5 } },
      firedUntil: at(10 * MINUTE),
    })
    await own.clock.advance(HOUR)
    expect(await own.schedules.update('x', { labels: {}, overlap: 'skip' })).toMatchObject({
      ...{ labels: {}, overlap: 'skip', payload: { for: 'us' }, firedUntil: at(30 * MINUTE), nextAt: at(90 * MINUTE) },
    })
    expect(await own.schedules.update('x', { every: HOUR })).toMatchObject({ timing: { kind: 'every', ms: HOUR } })
    expect(own.executed).toEqual([{ for: 'us' }])
    await own.durably.close()
  })

  it('a schedule is paused, resumed, run at once and removed', async () => {
    const own = stage()
    own.durably.start()
    await own.schedules.create('x', { ...REPORT, every: HOUR })
    expect(await own.schedules.pause('x')).toMatchObject({ pausedBecause: 'by hand' })
    await own.clock.advance(2.5 * HOUR)
    const { id } = await own.schedules.runNow('x')
    await own.schedules.resume('x')
    await own.clock.advance(HOUR)
    const runs = (await own.durably.getRuns()).reverse()
    expect(runs.map(({ scheduledFor }) => scheduledFor)).toEqual([null, at(3 * HOUR)])
    expect(runs[0]?.id).toBe(id)
    await own.schedules.remove('x')
    await own.durably.stop()
    await pass(own, DAY)
    expect([await own.schedules.get('x'), own.executed.length]).toEqual([null, 2])
    expect(await own.schedules.explain('x')).toContain('no schedule "x"')
  })

  it.each([true, false])(
    'a one-off that passed while it was paused has ended; its instant was known: %s',
    async (isKnown) => {
      const own = stage()
      await own.schedules.create('reminder', { ...REPORT, at: at(HOUR) })
      if (isKnown) await own.schedules.tick()
      await own.schedules.pause('reminder')
      await own.clock.stall(2 * HOUR)
      await own.schedules.resume('reminder')
      await own.schedules.tick()
      expect(await instantsOf(own)).toEqual([])
      expect(await own.schedules.get('reminder')).toMatchObject({ endedAt: at(2 * HOUR), nextAt: null, firedCount: 0 })
    },
  )

  it('a schedule is not changed to one that is over, though another that is over may be changed', async () => {
    const own = stage()
    const before = await own.schedules.create('x', { ...REPORT, every: HOUR })
    await own.schedules.create('once', { ...REPORT, at: at(MINUTE) })
    await own.clock.stall(2 * MINUTE)
    for (const changes of [{ at: at(MINUTE) }, { end: at(MINUTE) }]) {
      const changed = own.schedules.update('x', changes)
      await expect(changed).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('is over'),
      })
    }
    expect(await own.schedules.get('x')).toEqual(before)
    expect(await own.schedules.update('once', { priority: 3 })).toMatchObject({ priority: 3 })
  })

  it('a schedule that is removed at the same time is not started', async () => {
    const own = stage()
    const told: string[] = []
    own.durably.on('run:trigger', ({ runId }) => void told.push(runId))
    await own.schedules.create('x', { ...REPORT, every: HOUR })
    const schedules = own.storage.cluster?.schedules
    if (schedules === undefined) throw new Error('There is no cluster.')
    const { get } = schedules
    Object.assign(schedules, {
      async get(key: Parameters<typeof get>[0]) {
        const found = await get(key)
        await schedules.remove(key)
        return found
      },
    })
    const started = own.schedules.runNow('x', { as: { actor: 'ann' } })
    await expect(started).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect([told, await own.durably.getRuns()]).toEqual([[], []])
  })

  it('the instants of the future are not filled', async () => {
    const own = stage()
    await own.schedules.create('x', { ...REPORT, cron: '0 0 * * *' })
    const filled = own.schedules.backfill('x', { from: at(-DAY), to: at(1) })
    await expect(filled).rejects.toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining('past') })
    expect(await instantsOf(own)).toEqual([])
    expect((await own.schedules.backfill('x', { from: at(-DAY), to: at(0) })).length).toBe(1)
  })

  it('instants are shown before they come', async () => {
    const own = stage()
    const days = await own.schedules.preview({ cron: '0 9 * * 1', zone: 'Europe/Berlin' }, 2)
    expect(days.map((day) => day.toISOString())).toEqual(['2030-01-07T08:00:00.000Z', '2030-01-14T08:00:00.000Z'])
    await own.schedules.create('x', { ...REPORT, every: HOUR, end: at(2 * HOUR) })
    expect((await own.schedules.preview('x', 9)).map((each) => each.toISOString())).toEqual([at(HOUR), at(2 * HOUR)])
  })

  it('a range of the past is filled, once', async () => {
    const own = stage()
    await own.schedules.create('x', { ...REPORT, cron: '0 0 * * *' })
    const range = { from: at(-5 * DAY), to: at(-2 * DAY) }
    const ids = await own.schedules.backfill('x', range)
    expect(ids.length).toBe(3)
    expect(await own.schedules.backfill('x', range)).toEqual(ids)
    expect(await own.schedules.backfill('x', { ...range, to: at(-DAY) })).toEqual([...ids, expect.any(String)])
    expect(await instantsOf(own)).toEqual([-5, -4, -3, -2].map((day) => at(day * DAY)))
  })

  it('schedules are listed in pages', async () => {
    const own = stage()
    for (const name of ['b', 'a', 'c']) await own.schedules.create(name, { ...REPORT, every: HOUR })
    const [first, second] = await own.schedules.list({ limit: 2 })
    expect([first?.name, second?.name]).toEqual(['a', 'b'])
    expect((await own.schedules.list({ after: second, jobName: 'report' })).map(({ name }) => name)).toEqual(['c'])
  })
})

describe('what makes no sense', () => {
  const bad: readonly (readonly [string, object, string])[] = [
    ['an invalid pattern', { cron: '61 * * * *' }, 'Invalid value for minute'],
    ['days that are to come together', { cron: '0 0 1-7 * +MON' }, 'has a "+"'],
    ['an unknown zone', { cron: '0 2 * * *', zone: 'Mars/Olympus' }, 'no time zone "Mars/Olympus"'],
    ['no timing', {}, 'none of them'],
    ['two timings', { cron: '0 2 * * *', every: 1000 }, 'cron and every'],
    ['a zone without a pattern', { every: 1000, zone: 'UTC' }, 'for cron only'],
    ['an unknown job', { every: 1000, job: 'nobody' }, 'no job "nobody"'],
    ['a payload that its schema refuses', { every: 1000, payload: {} }, 'for'],
    ['a one-off in the past', { at: at(-1) }, 'its time is over'],
    ['an end in the past', { every: 1000, end: at(-1) }, 'its time is over'],
    ['an end before the start', { every: 1000, start: at(2), end: at(1) }, 'before it starts'],
    ['too short an interval', { every: 1 }, 'from 100'],
    ['too long an interval', { every: Number.MAX_SAFE_INTEGER }, 'up to 100 years'],
    ['a time that is none', { at: 'tomorrow' }, 'ISO 8601'],
    ['an unknown overlap', { every: 1000, overlap: 'maybe' }, 'overlap'],
    ['two turns', { every: 1000, overlap: 'queue', concurrencyKey: 'k' }, 'concurrencyKey'],
    ['a misspelled option', { every: 1000, overlaps: 'skip' }, 'Did you mean "overlap"?'],
    ['missed instants without a bound', { every: 1000, missed: { all: true } }, 'with a max'],
    ['a negative jitter', { every: 1000, jitter: -1 }, 'jitter'],
    ['a jitter that no date has room for', { every: 1000, jitter: Number.MAX_VALUE }, 'jitter'],
    ['labels that are none', { every: 1000, labels: { a: 1 } }, 'Label "a"'],
  ]

  it.each(bad)('is refused with one clear error: %s', async (_what, options, expected) => {
    const own = stage()
    const given = { ...REPORT, ...options } as never
    await expect(own.schedules.create('x', given)).rejects.toThrow(expected)
    expect(await own.schedules.list()).toEqual([])
  })

  it.each(bad.filter(([what]) => !what.endsWith('in the past')))(
    'is refused in the code too: %s',
    (_what, options, expected) => {
      const own = stage()
      expect(() => own.schedules.define('x', { ...REPORT, ...options } as never)).toThrow(expected)
    },
  )

  it.each([
    ['an invalid pattern', { cron: '61 * * * *' }, 'Invalid value for minute'],
    ['an unknown zone', { cron: '0 2 * * *', zone: 'Mars/Olympus' }, 'no time zone "Mars/Olympus"'],
    ['a payload that its schema refuses', { payload: {} }, 'for'],
    ['a misspelled option', { overlaps: 'skip' }, 'Did you mean "overlap"?'],
    ['a one-off in the past', { at: at(-1) }, 'its time is over'],
  ])('is refused as a change too: %s', async (_what, changes, expected) => {
    const own = stage()
    const before = await own.schedules.create('x', { ...REPORT, every: HOUR })
    await expect(own.schedules.update('x', changes as never)).rejects.toThrow(expected)
    expect(await own.schedules.get('x')).toEqual(before)
  })

  it('is a name that is taken', async () => {
    const own = stage()
    own.schedules.define('x', { ...REPORT, every: HOUR })
    expect(() => own.schedules.define('x', { ...REPORT, every: MINUTE })).toThrow('defined twice')
    own.schedules.define('x', { ...REPORT, every: MINUTE, tenant: 'acme' })
    await own.schedules.tick()
    const taken = own.schedules.create('x', { ...REPORT, every: HOUR })
    await expect(taken).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('the code of "app"'),
    })
    await expect(own.schedules.update('x', { every: 5000 })).rejects.toMatchObject({ code: 'CONFLICT' })
    for (const name of ['', 'x'.repeat(201)]) {
      await expect(own.schedules.create(name, { ...REPORT, every: HOUR })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
      })
    }
  })

  it('is a name that no database keeps as it is', async () => {
    const { schedules } = stage()
    for (const name of ['a\0b', 'a\ud800b']) {
      await expect(schedules.create(name, { ...REPORT, every: HOUR })).rejects.toThrow('NUL or broken Unicode')
      expect(() => schedules.define(name, { ...REPORT, every: HOUR })).toThrow('NUL or broken Unicode')
      await expect(schedules.get('x', { tenant: name })).rejects.toThrow('NUL or broken Unicode')
      await expect(schedules.pause('x', { because: name })).rejects.toThrow('NUL or broken Unicode')
    }
    expect(() => schedules.define('', { ...REPORT, every: HOUR })).toThrow('a name of 1 to 200')
    expect(await schedules.list()).toEqual([])
  })

  it.each([
    { limit: 0 },
    { limit: 1.5 },
    { limit: Number.NaN },
    { after: {} },
    { after: null },
    { tenant: 5 },
    { jobName: 'a\0b' },
    { source: null },
    { labels: null },
    { labels: { 'a\0b': 'c' } },
    { paused: 'yes' },
  ])('is a condition of a list that is none: %j', async (filter) => {
    await expect(stage().schedules.list(filter as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('is a lack of options', async () => {
    const { schedules } = stage()
    const none = null as never
    expect(() => schedules.define('x', none)).toThrow('takes its options as an object')
    await expect(schedules.create('x', none)).rejects.toThrow('takes its options as an object')
    await expect(schedules.preview(none, 1)).rejects.toThrow('takes its options as an object')
  })

  it('is a misspelled scope', async () => {
    const { schedules } = stage()
    await schedules.create('x', { ...REPORT, every: HOUR })
    const scope = { tennant: 'acme' } as never
    const calls = [
      schedules.update('x', {}, scope),
      schedules.pause('x', scope),
      schedules.resume('x', scope),
      schedules.remove('x', scope),
      schedules.runNow('x', scope),
      schedules.get('x', scope),
      schedules.preview('x', 1, scope),
      schedules.explain('x', scope),
    ]
    for (const call of calls) await expect(call).rejects.toThrow('Did you mean "tenant"?')
    expect(await schedules.get('x')).not.toBeNull()
  })

  it('is a schedule that is not there', async () => {
    const { schedules } = stage()
    const calls = [
      schedules.update('x', {}),
      schedules.pause('x'),
      schedules.resume('x'),
      schedules.remove('x'),
      schedules.runNow('x'),
      schedules.preview('x', 1),
      schedules.backfill('x', { from: at(0), to: at(1) }),
    ]
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('several processes', () => {
  it('fire each instant once, and the next goes on where one stops or sleeps', async () => {
    const first = stage()
    const { clock, storage } = first
    const second = stage({ clock, storage })
    for (const { schedules } of [first, second]) {
      schedules.define('x', { ...REPORT, every: MINUTE, missed: { all: true, max: 100 } })
    }
    first.durably.start()
    second.durably.start()
    await clock.advance(10 * MINUTE)
    await first.durably.stop()
    await clock.advance(10 * MINUTE)
    first.durably.start()
    await second.durably.stop()
    await clock.advance(10 * MINUTE)
    expect(await instantsOf(first)).toEqual(Array.from({ length: 30 }, (_, minute) => at((minute + 1) * MINUTE)))
    expect(first.executed.length + second.executed.length).toBe(30)
    expect([...first.errors, ...second.errors]).toEqual([])
    await first.durably.close()
  })

  it('have a storage that can', () => {
    const { storage } = stage()
    const { cluster: _cluster, ...without } = storage
    expect(() => stage({ storage: without as never })).toThrow(expect.objectContaining({ code: 'CAPABILITY_MISSING' }))
  })
})

describe('a schedule that this process cannot read', () => {
  it('is told of once, and keeps no other one from firing', async () => {
    const own = stage()
    await own.schedules.create('of another zone', { ...REPORT, cron: '0 * * * *', zone: 'Asia/Tokyo' })
    await own.schedules.create('hourly', { ...REPORT, every: HOUR })
    // As it is where somebody has defined it whose tables of time zones are newer.
    const { schedules } = own.storage.cluster as ClusterStorage
    const { schedule } = (await schedules.get({ tenant: '', name: 'of another zone' })) as DueSchedule
    const { jobName, payload, overlap } = schedule
    const definition = schedule.definition.replace('Asia/Tokyo', 'Mars/Olympus')
    await schedules.change({
      ...{ tenant: '', name: schedule.name, isAnew: true },
      content: { jobName, payload, overlap, definition },
    })
    await pass(own, 3 * HOUR)
    expect(await instantsOf(own)).toEqual([at(HOUR), at(2 * HOUR), at(3 * HOUR)])
    expect(own.errors).toEqual([expect.stringContaining('no time zone "Mars/Olympus"')])
  })

  it('keeps no other one from firing, however many of them there are', async () => {
    const own = stage()
    await own.schedules.create('of another zone', { ...REPORT, cron: '0 * * * *', zone: 'Asia/Tokyo' })
    const { schedules } = own.storage.cluster as ClusterStorage
    const { schedule } = (await schedules.get({ tenant: '', name: 'of another zone' })) as DueSchedule
    const definition = schedule.definition.replace('Asia/Tokyo', 'Mars/Olympus')
    const ids = Array.from({ length: 1001 }, (_, n) => `of Mars ${n}`)
    await schedules.create(ids.map((id) => ({ ...schedule, id, name: id, definition })))
    await own.clock.stall(MINUTE)
    await own.schedules.create('behind them', { ...REPORT, every: HOUR })
    await own.schedules.tick()
    await own.clock.stall(HOUR)
    await own.schedules.tick()
    expect(await instantsOf(own)).toContain(at(HOUR + MINUTE))
    expect(own.errors.length).toBe(ids.length)
  })
})

describe('trouble of the storage', () => {
  it('is told, and no instant is lost', async () => {
    const own = stage()
    own.schedules.define('x', { ...REPORT, every: MINUTE, missed: { all: true, max: 100 } })
    const schedules = own.storage.cluster?.schedules
    if (schedules === undefined) throw new Error('There is no cluster.')
    let calls = 0
    const stubborn = { ...schedules }
    Object.assign(schedules, {
      async due(limit: number) {
        calls += 1
        if (calls % 3 === 0) throw new Error('not now')
        return stubborn.due(limit)
      },
      async fire(...params: Parameters<typeof stubborn.fire>) {
        calls += 1
        const answer = await stubborn.fire(...params)
        if (calls % 2 === 0) throw new Error('the answer was lost')
        return answer
      },
    })
    own.durably.start()
    await own.clock.advance(30 * MINUTE)
    expect(await instantsOf(own)).toEqual(Array.from({ length: 30 }, (_, minute) => at((minute + 1) * MINUTE)))
    expect(own.errors).toContain('the answer was lost')
    await own.durably.close()
  })
})
