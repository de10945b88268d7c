import { createDurably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { describe, expect, it } from 'vitest'
import { createCluster, createScheduler } from '../src/index'
import { endAll, type Fleet, fleet, type Member } from './fleet'

const LEASE = 15_000

async function started(members: readonly Member[], { clock }: Fleet): Promise<void> {
  for (const { durably } of members) durably.start()
  await clock.advance(1000)
}

it.each([
  { leads: 'no' },
  { version: 5 },
  { version: 'a\0b' },
  { labels: { gpu: 'a\0b' } },
  { lease: Number.MAX_SAFE_INTEGER },
])('options that make no sense are refused, and the instance may have others: %j', (options) => {
  const durably = createDurably({ storage: createMemoryStorage() })
  expect(() => createCluster(durably, options as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  expect(createCluster(durably).status().isLeader).toBe(false)
})

describe('the leader', () => {
  it('is one process, and another one when it has left', async () => {
    const all = fleet()
    const [a, b] = [all.join('a'), all.join('b')]
    await started([a, b], all)
    expect([a, b].map(({ cluster }) => cluster.status().isLeader)).toEqual([true, false])
    expect(await b.cluster.leader()).toMatchObject({ workerId: a.cluster.status().workerId, epoch: 1, isOver: false })
    await a.durably.stop()
    expect(a.cluster.status()).toMatchObject({ isLeader: false, epoch: null })
    await all.clock.advance(LEASE / 3)
    expect(b.cluster.status()).toMatchObject({ isLeader: true, epoch: 2 })
    await b.durably.stop()
  })

  it('is another one within two leases when it is silent, and knows that itself before', async () => {
    const all = fleet()
    let isCut = false
    const cluster = {
      ...all.storage.cluster,
      lead: (params: Parameters<typeof all.storage.cluster.lead>[0]) =>
        isCut ? new Promise<never>(() => {}) : all.storage.cluster.lead(params),
    }
    const [a, b] = [all.join('a', { storage: { ...all.storage, cluster } }), all.join('b')]
    await started([a, b], all)
    isCut = true
    await all.clock.advance(LEASE - 2000)
    expect([a, b].map(({ cluster: own }) => own.status().isLeader)).toEqual([false, false])
    await all.clock.advance(LEASE)
    expect([a, b].map(({ cluster: own }) => own.status().isLeader)).toEqual([false, true])
    await b.durably.stop()
  })

  it('leads for as long as is set while it does', async () => {
    const all = fleet()
    let isCut = false
    const cluster = {
      ...all.storage.cluster,
      lead: (params: Parameters<typeof all.storage.cluster.lead>[0]) =>
        isCut ? new Promise<never>(() => {}) : all.storage.cluster.lead(params),
    }
    const [a, b] = [all.join('a', { storage: { ...all.storage, cluster } }), all.join('b')]
    await started([a, b], all)
    await b.durably.settings.set({ leaderLeaseSeconds: 2 })
    await all.clock.advance(LEASE)
    isCut = true
    await all.clock.advance(4000)
    expect([a, b].map(({ cluster: own }) => own.status().isLeader)).toEqual([false, true])
    await b.durably.stop()
  })

  it('is none as soon as the database fails', async () => {
    const all = fleet()
    let isAway = false
    const lead: typeof all.storage.cluster.lead = (params) =>
      isAway ? Promise.reject(new Error('away')) : all.storage.cluster.lead(params)
    const a = all.join('a', { storage: { ...all.storage, cluster: { ...all.storage.cluster, lead } } })
    await started([a], all)
    isAway = true
    await all.clock.advance(LEASE / 3)
    expect([a.cluster.status().isLeader, a.errors]).toEqual([false, ['away']])
    isAway = false
    await all.clock.advance(LEASE / 3)
    expect(a.cluster.status()).toMatchObject({ isLeader: true, epoch: 1 })
    await a.durably.stop()
  })

  it('fires the schedules, and nobody else does', async () => {
    const all = fleet()
    const members = [all.join('a'), all.join('b', { leads: false })]
    for (const { durably } of members) {
      createScheduler(durably).define('minutely', { job: 'placed', payload: 'tick', every: 60_000 })
    }
    await started(members, all)
    await all.clock.advance(60_000)
    expect((await all.storage.getRuns({ jobNames: ['placed'] })).length).toBe(1)
    expect(await all.storage.cluster.getLead('schedules')).toBe(null)
    await endAll(all.clock, members)
    await members[0]?.durably.stop()
    await all.clock.advance(10 * 60_000)
    expect((await all.storage.getRuns({ jobNames: ['placed'] })).length).toBe(1)
    await members[1]?.durably.stop()
  })

  it('is asked for once in an instance', () => {
    const a = fleet().join('a')
    expect(() => a.durably && createScheduler(a.durably)).not.toThrow()
    expect(() => fleet().join('b', { lease: 0 })).toThrow('lease')
    expect(() => fleet().join('b', { labels: { gpu: 1 } as never })).toThrow('Label')
  })
})

describe('workers', () => {
  it('tell of themselves, while they work, end and have left', async () => {
    const all = fleet()
    const a = all.join('a', { concurrency: 3, labels: { gpu: 'yes' }, version: 'v2' })
    const b = all.join('b')
    await started([a, b], all)
    const [first] = await b.cluster.workers()
    expect(first).toMatchObject({ workerId: 'a', presence: 'active', capacity: 3, isAlive: true, codeVersion: 'v2' })
    expect(first).toMatchObject({ labels: { gpu: 'yes' }, placedJobs: ['placed'], running: 0 })
    await a.durably.trigger('plain', 1)
    await all.clock.advance(1000)
    const holder = [a, b].find(({ inHand }) => inHand.size > 0) as Member
    const stopping = holder.durably.stop()
    await all.clock.advance(1000)
    const seen = async () =>
      (await all.storage.cluster.placement.getWorkers()).map(({ presence, running }) => [presence, running])
    expect(await seen()).toEqual(holder === a ? [['draining', 1], ['active', 0]] : [['active', 0], ['draining', 1]]) // biome-ignore format: short
    holder.inHand.get(1)?.(null)
    await stopping
    expect((await seen()).filter(([presence]) => presence === 'detached')).toEqual([['detached', 0]])
    for (const { durably } of [a, b]) await durably.stop()
  })

  it('tell which definitions of jobs their code has', async () => {
    const all = fleet()
    const a = all.join('a', { version: 'v1', job: { version: '3' } })
    await started([a], all)
    const jobs = (await a.cluster.jobs()).map(({ name, version, codeVersion }) => [name, version, codeVersion])
    expect(jobs).toEqual([
      ['placed', '3', 'v1'],
      ['plain', '', 'v1'],
    ])
    await a.durably.stop()
  })

  it('are forgotten a day after they have left, and the jobs of their code with them', async () => {
    const all = fleet()
    const [a, b] = [all.join('a', { version: 'v2' }), all.join('b', { version: 'v1' })]
    await started([a, b], all)
    await b.durably.stop()
    await all.clock.stall(26 * 3_600_000)
    await all.clock.advance(3_600_000 + LEASE)
    expect((await a.cluster.workers()).map(({ workerId }) => workerId)).toEqual(['a'])
    const codeVersions = (await a.cluster.jobs()).map(({ codeVersion }) => codeVersion)
    expect(codeVersions).toEqual(['v2', 'v2'])
    await a.durably.stop()
  })

  it('tell of their jobs anew after they were forgotten', async () => {
    const all = fleet()
    let isAway = false
    const { placement } = all.storage.cluster
    const beat: typeof placement.beat = (worker) =>
      isAway ? Promise.reject(new Error('away')) : placement.beat(worker)
    const cluster = { ...all.storage.cluster, placement: { ...placement, beat } }
    const [a, b] = [all.join('a'), all.join('b', { version: 'v1', leads: false, storage: { ...all.storage, cluster } })]
    await started([a, b], all)
    isAway = true
    await all.clock.stall(26 * 3_600_000)
    await all.clock.advance(3_600_000 + LEASE)
    expect((await a.cluster.jobs()).some(({ codeVersion }) => codeVersion === 'v1')).toBe(false)
    isAway = false
    await all.clock.advance(LEASE)
    expect((await a.cluster.jobs()).some(({ codeVersion }) => codeVersion === 'v1')).toBe(true)
    for (const { durably } of [a, b]) await durably.stop()
  })
})
