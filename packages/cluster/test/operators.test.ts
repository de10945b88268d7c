import { describe, expect, it } from 'vitest'
import { createInbox } from '../src/index'
import { at, DAY, HOUR, instantsOf, MINUTE, pass, schemaOf, stage, withStaleLeads } from './stage'

const report = { job: 'report', payload: { for: 'boss' } } as const
const as = { actor: 'ann' }

describe('who does something to a schedule', () => {
  it('is kept with what was before and after', async () => {
    const { schedules, durably, clock } = stage()
    await schedules.create('nightly', { ...report, every: HOUR, as })
    await schedules.update('nightly', { every: MINUTE }, { as })
    await schedules.pause('nightly', { because: 'a feast', as })
    await schedules.resume('nightly', { as })
    const { id } = await schedules.runNow('nightly', { as })
    await clock.stall(4 * MINUTE)
    const range = { from: at(0), to: at(4 * MINUTE) }
    const ids = await schedules.backfill('nightly', { ...range, as })
    expect(await schedules.backfill('nightly', { ...range, as })).toEqual(ids)
    await schedules.remove('nightly', { as })
    const entries = (await durably.getAudit({ actor: 'ann', target: 'nightly' })).reverse()
    expect(entries.map(({ action }) => action)).toEqual([
      ...['schedules.create', 'schedules.update', 'schedules.pause', 'schedules.resume'],
      ...['schedules.runNow', 'schedules.backfill', 'schedules.remove'],
    ])
    expect(entries.map(({ before, after }) => [before, after])).toMatchObject([
      [null, { jobName: 'report', definition: { timing: { kind: 'every', ms: HOUR } }, version: 1 }],
      [{ version: 1 }, { definition: { timing: { kind: 'every', ms: MINUTE } }, version: 2 }],
      [{ pausedBecause: null }, { pausedBecause: 'a feast' }],
      [{ pausedBecause: 'a feast' }, { pausedBecause: null }],
      [null, { runs: [id] }],
      [null, { runs: ids }],
      [{ pausedBecause: null }, null],
    ])
    expect(ids).toHaveLength(3)
  })

  it('is not kept where nobody says so, nor of what was refused', async () => {
    const { schedules, durably } = stage()
    await schedules.create('nightly', { ...report, every: HOUR })
    await expect(schedules.create('nightly', { ...report, every: HOUR, as })).rejects.toThrow('already')
    await schedules.pause('nightly')
    await schedules.resume('nightly')
    await schedules.runNow('nightly')
    await schedules.remove('nightly')
    await expect(schedules.remove('nightly', { as })).rejects.toThrow('no schedule')
    expect(await durably.getAudit()).toEqual([])
  })

  it('tells of the runs that were created, and nothing of those that were there', async () => {
    const { schedules, durably, clock } = stage()
    const told: string[] = []
    durably.on('run:trigger', ({ runId }) => void told.push(runId))
    await schedules.create('often', { ...report, every: MINUTE })
    await clock.stall(3 * MINUTE)
    const [first] = await schedules.backfill('often', { from: at(0), to: at(90_000) })
    const ids = await schedules.backfill('often', { from: at(0), to: at(3 * MINUTE), as })
    expect([ids[0], told]).toEqual([first, ids])
    const [entry] = await durably.getAudit()
    expect(entry).toMatchObject({ after: { runs: ids.slice(1) } })
  })
})

describe('who sends messages out anew', () => {
  it('is kept with how many these were', async () => {
    const { durably } = stage()
    const inbox = createInbox(durably)
    await durably.publish({ type: 'x', payload: 1, tenant: 'acme' })
    await inbox.drain()
    expect(await inbox.replay({ type: 'x', tenant: 'acme' }, { as })).toBe(1)
    expect(await inbox.replay({ type: 'y' }, { as })).toBe(0)
    const of = { actor: 'ann', action: 'inbox.replay', targetKind: 'messages', tenant: 'acme' }
    expect(await durably.getAudit()).toMatchObject([{ ...of, after: { messages: 1, of: { types: ['x'] } } }])
  })
})

describe('who sends many messages out anew', () => {
  it('does so in batches, each with its own entry', async () => {
    const { durably } = stage()
    const inbox = createInbox(durably)
    for (let n = 0; n < 1200; n++) await durably.publish({ type: 'x' })
    await inbox.drain()
    expect(await inbox.replay({ type: 'x' }, { as })).toBe(1200)
    const entries = await durably.getAudit()
    expect(entries.map(({ after }) => (after as { messages: number }).messages).reverse()).toEqual([500, 500, 200])
  })
})

describe('who removes messages, or what a job wants', () => {
  it('is kept with which messages these were', async () => {
    const { durably, clock } = stage()
    const inbox = createInbox(durably)
    const ids = [await durably.publish({ type: 'x' }), await durably.publish({ type: 'y' })].map(({ id }) => id)
    await inbox.drain()
    await clock.stall(MINUTE)
    expect(await inbox.purge({ olderThan: 0, as })).toBe(2)
    expect(await inbox.purge({ olderThan: 0, as })).toBe(0)
    const of = { actor: 'ann', action: 'inbox.purge', targetKind: 'messages', after: null }
    expect(await durably.getAudit()).toMatchObject([{ ...of, before: { messages: ids } }])
    await expect(inbox.purge({ olderThan: 0, by: 'ann' } as never)).rejects.toThrow('by')
  })

  it('is kept with what the job wanted', async () => {
    const { durably, clock, storage } = stage()
    durably.defineJob({ name: 'gone', input: schemaOf(), on: { type: 'x', where: { plan: 'pro' } } }, async () => {})
    await createInbox(durably).drain()
    const later = stage({ clock, storage })
    const inbox = createInbox(later.durably)
    await inbox.forget('gone', { as })
    await inbox.forget('gone', { as })
    const of = { actor: 'ann', action: 'inbox.forget', targetKind: 'job', target: 'gone', after: null }
    const entries = await later.durably.getAudit()
    expect(entries).toMatchObject([{ ...of, before: { on: { x: { where: { plan: 'pro' } } } } }])
    await expect(inbox.forget('gone', { by: 'ann' } as never)).rejects.toThrow('by')
  })
})

describe('who has lost the lead', () => {
  it('removes nothing that is old', async () => {
    const { durably, clock, storage, schedules } = stage({ keepEnded: 1 })
    const inbox = createInbox(durably, { keep: 1 })
    await schedules.create('reminder', { ...report, at: at(MINUTE) })
    await durably.publish({ type: 'x' })
    await inbox.drain()
    await clock.stall(2 * MINUTE)
    await schedules.tick()
    await clock.stall(2 * HOUR)
    const restore = withStaleLeads(storage)
    await schedules.tick()
    await inbox.drain()
    expect([(await schedules.list()).length, (await inbox.list()).length]).toEqual([1, 1])
    restore()
    await schedules.tick()
    await inbox.drain()
    expect([(await schedules.list()).length, (await inbox.list()).length]).toEqual([0, 0])
  })
})

describe('the removal of what is old', () => {
  async function withOldOnes(count: number) {
    const own = stage()
    const inbox = createInbox(own.durably, { keep: HOUR })
    for (let n = 0; n < count; n++) await own.durably.publish({ type: 'x', payload: n })
    await inbox.drain()
    await own.clock.stall(2 * HOUR)
    return { ...own, left: async () => (await inbox.list({ limit: 10_000 })).length, inbox }
  }

  it('is some at each turn, until there is no more of it', async () => {
    const { inbox, left, durably, clock } = await withOldOnes(1200)
    const counts: number[] = []
    for (let turn = 0; turn < 3; turn++) {
      await inbox.drain()
      counts.push(await left())
    }
    expect(counts).toEqual([700, 200, 0])
    await durably.publish({ type: 'x' })
    await clock.stall(HOUR - MINUTE)
    await inbox.drain()
    expect(await left()).toBe(1)
  })

  it('goes on without a call', async () => {
    const { durably, clock, left } = await withOldOnes(1200)
    durably.start()
    await clock.advance(0)
    expect(await left()).toBe(0)
    await durably.close()
  })

  it('is tried again at the next turn after trouble', async () => {
    const { storage, inbox, left } = await withOldOnes(1)
    const of = storage.cluster?.inbox ?? ({} as never)
    const { purge } = of
    Object.assign(of, { purge: () => Promise.reject(new Error('not now')) })
    await expect(inbox.drain()).rejects.toThrow('not now')
    Object.assign(of, { purge })
    await inbox.drain()
    expect(await left()).toBe(0)
  })
})

describe('schedules that have ended', () => {
  const names = async ({ schedules }: ReturnType<typeof stage>, ended?: boolean) =>
    (await schedules.list({ ended })).map(({ name }) => name)

  it('are listed for a while, then removed, and their runs stay', async () => {
    const all = stage({ keepEnded: 2 * DAY })
    const { schedules, clock } = all
    schedules.define('of the code', { ...report, at: at(HOUR) })
    await schedules.create('reminder', { ...report, at: at(HOUR), labels: { team: 'red' } })
    await schedules.create('nightly', { ...report, every: DAY })
    await pass(all, 2 * HOUR)
    expect([await names(all, true), await names(all, false)]).toEqual([['of the code', 'reminder'], ['nightly']])
    await clock.stall(DAY)
    await schedules.tick()
    expect(await names(all)).toHaveLength(3)
    await clock.stall(DAY)
    await schedules.tick()
    expect(await names(all)).toEqual(['nightly', 'of the code'])
    expect(await instantsOf(all)).toContain(at(HOUR))
    await schedules.create('reminder', { ...report, at: at(4 * DAY) })
  })
})

it('schedules are listed by the labels of their runs', async () => {
  const { schedules } = stage()
  await schedules.create('a', { ...report, every: HOUR, labels: { team: 'red', size: 's' } })
  await schedules.create('b', { ...report, every: HOUR, labels: { team: 'red' } })
  await schedules.pause('b')
  const names = async (filter: Parameters<typeof schedules.list>[0]) =>
    (await schedules.list(filter)).map(({ name }) => name)
  expect(await names({ labels: { team: 'red' } })).toEqual(['a', 'b'])
  expect(await names({ labels: { team: 'red' }, paused: true })).toEqual(['b'])
  expect(await names({ labels: { size: 's' }, jobName: 'report', tenant: '' })).toEqual(['a'])
})
