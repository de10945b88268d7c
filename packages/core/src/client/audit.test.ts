import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createMemoryStorage } from '../memory'
import { CapabilityMissingError, type Durably, InvalidOptionError } from '../index'
import { anything, type Bench, createBench } from '../testing/test-bench'

const ANN = { actor: 'ann' }

let bench: Bench
let durably: Durably

beforeEach(() => {
  bench = createBench()
  durably = bench.open()
})

afterEach(() => bench.close())

function failing() {
  return durably.defineJob({ name: 'job', input: anything }, () => Promise.reject(new Error('no')))
}

async function failed(tenant = ''): Promise<string> {
  const job = durably.jobs().some(({ name }) => name === 'job') ? 'job' : failing().name
  const { id } = await durably.trigger(job, {}, { tenant })
  await durably.runUntilIdle()
  return id
}

const done = async () => (await durably.getAudit()).map(({ actor, action, target }) => [actor, action, target])

describe('getAudit()', () => {
  it('has who did what to which run, with what was before and after', async () => {
    const id = await failed()
    await durably.retry(id, { as: ANN })
    await durably.cancel(id, { as: { actor: 'bob' } })
    await durably.deleteRun(id, { as: ANN })
    expect(await done()).toEqual([
      ['ann', 'deleteRun', id],
      ['bob', 'cancel', id],
      ['ann', 'retry', id],
    ])
    const [removed, cancelled, retried] = await durably.getAudit({ target: id })
    expect(retried).toMatchObject({
      targetKind: 'run',
      before: { status: 'failed', attempt: 1 },
      after: { status: 'pending', attempt: 2 },
    })
    expect(cancelled).toMatchObject({ before: { status: 'pending' }, after: { status: 'cancelled' } })
    expect(removed).toMatchObject({ before: { status: 'cancelled' }, after: null, at: expect.any(String) })
  })

  it('has nothing of calls that do not say who, nor of those that are refused', async () => {
    const id = await failed()
    await expect(durably.cancel(id, { as: ANN })).rejects.toThrow('cancel()')
    await durably.retry(id)
    expect(await durably.getAudit()).toEqual([])
  })

  it('has purges, pauses and settings', async () => {
    const id = await failed()
    await durably.pauseJob('job', { scope: 'database', as: ANN })
    await durably.resumeJob('job', { scope: 'database', as: ANN })
    await durably.settings.set({ logRetentionDaysDb: 3 }, { as: ANN })
    const waiting = await durably.trigger('job', {}, { delay: 60_000 })
    await durably.signal(waiting.id, 'approve', {}, { as: ANN })
    expect(await durably.purge({ as: ANN })).toBe(1)
    expect(await durably.purge({ as: ANN })).toBe(0)
    expect(await durably.getAudit()).toMatchObject([
      { action: 'purge', targetKind: 'runs', before: { runs: [id] }, after: null },
      { action: 'signal', target: waiting.id, after: { signal: 'approve' } },
      { action: 'settings', before: {}, after: { log_retention_days_db: 3 } },
      { action: 'resumeJob', target: 'job', before: { paused: true }, after: { paused: false } },
      { action: 'pauseJob', target: 'job', before: { paused: false }, after: { paused: true } },
    ])
  })

  it('is of one tenant, and in one name, through a scope', async () => {
    const [own, other] = [await failed('acme'), await failed('other')]
    const scoped = durably.scoped({ tenant: 'acme', as: ANN })
    await scoped.retry(own)
    await expect(scoped.retry(other)).rejects.toThrow('There is no run')
    await durably.scoped({ as: { actor: 'root' } }).retry(other)
    await scoped.cancel(own, { as: { actor: 'ann by proxy' } })
    expect(await scoped.getAudit()).toMatchObject([{ actor: 'ann by proxy' }, { actor: 'ann', target: own }])
    expect(await scoped.getAudit({ tenant: 'other' })).toHaveLength(2)
    expect(await durably.getAudit({ tenant: 'other' })).toMatchObject([{ actor: 'root', target: other }])
  })

  it('is read by conditions and in pages, and purged by age', async () => {
    const id = await failed()
    for (const actor of ['a', 'b', 'c']) {
      await durably.retry(id, { as: { actor } })
      await durably.cancel(id)
    }
    const page = await durably.getAudit({ limit: 2 })
    expect(page.map(({ actor }) => actor)).toEqual(['c', 'b'])
    expect(await durably.getAudit({ cursor: page[1] })).toMatchObject([{ actor: 'a' }])
    expect(await durably.getAudit({ actor: 'b', action: 'retry' })).toHaveLength(1)
    await bench.clock.advance(1000)
    expect(await durably.purgeAudit({ olderThan: 5000 })).toBe(0)
    expect(await durably.purgeAudit({ olderThan: 500 })).toBe(3)
  })

  it('refuses what makes no sense, and a storage that cannot keep it', async () => {
    const id = await failed()
    for (const as of [{ actor: '' }, {} as never, { actor: 'a', role: 'b' } as never, { actor: 'a\0' }]) {
      await expect(durably.retry(id, { as })).rejects.toThrow(InvalidOptionError)
      expect(() => durably.scoped({ tenant: '', as })).toThrow(InvalidOptionError)
    }
    await expect(durably.getAudit({ cursor: { at: 'yesterday', id } })).rejects.toThrow(InvalidOptionError)
    await expect(durably.getAudit({ limit: 0 })).rejects.toThrow(InvalidOptionError)
    await expect(durably.purgeAudit({ olderThan: -1 })).rejects.toThrow(InvalidOptionError)
    await expect(durably.purgeAudit({ olderThan: Number.MAX_SAFE_INTEGER })).rejects.toThrow('up to 100 years')
    await expect(durably.purgeAudit({} as never)).rejects.toThrow('olderThan must be a number of milliseconds from 0')
    const { audit: _none, ...storage } = createMemoryStorage()
    const without = bench.open({ storage })
    await expect(without.cancel(id, { as: ANN })).rejects.toThrow(CapabilityMissingError)
  })
})

describe('settings', () => {
  it('are heard of by other instances within five seconds, and read once in that time', async () => {
    const other = bench.open()
    expect(await other.settings.get()).toEqual({})
    expect(await durably.settings.set({ reassignAfterSeconds: 7, leaderLeaseSeconds: 20 })).toEqual({
      reassignAfterSeconds: 7,
      leaderLeaseSeconds: 20,
    })
    expect(await other.settings.get()).toEqual({})
    await bench.clock.advance(5000)
    expect(await other.settings.get()).toEqual({ reassignAfterSeconds: 7, leaderLeaseSeconds: 20 })
    expect(await durably.settings.set({ reassignAfterSeconds: null })).toEqual({ leaderLeaseSeconds: 20 })
    expect(await durably.settings.get()).toEqual({ leaderLeaseSeconds: 20 })
  })

  it('refuse what is no value of theirs, and look past what somebody wrote by hand', async () => {
    const bad = [{ logRetentionDaysDb: -1 }, { reassignAfterSeconds: 0 }, { leaderLeaseSeconds: Number.NaN }]
    const tooLong = { leaderLeaseSeconds: 1e12 }
    for (const changes of [...bad, tooLong, { unknown: 1 } as never, { auditRetentionDays: '3' } as never]) {
      await expect(durably.settings.set(changes)).rejects.toThrow(InvalidOptionError)
    }
    await bench.storage.settings.set({
      log_retention_days_db: '"soon"',
      reassign_after_seconds: '{}',
      other: '1',
      leader_lease_seconds: '1e300',
    })
    expect(await durably.settings.get()).toEqual({})
    await bench.storage.settings.set({ audit_retention_days: '1000000' })
    expect((await bench.open().settings.get()).auditRetentionDays).toBe(36_600)
  })

  it('are asked for again after an error, and are none without the group', async () => {
    const { get } = bench.storage.settings
    let isAway = true
    const settings = { ...bench.storage.settings, get: () => (isAway ? Promise.reject(new Error('away')) : get()) }
    const unlucky = bench.open({ storage: { ...bench.storage, settings } })
    await expect(unlucky.settings.get()).rejects.toThrow('away')
    isAway = false
    expect(await unlucky.settings.get()).toEqual({})
    const { settings: _none, ...storage } = createMemoryStorage()
    const without = bench.open({ storage })
    expect(await without.settings.get()).toEqual({})
    await expect(without.settings.set({})).rejects.toThrow(CapabilityMissingError)
  })
})
