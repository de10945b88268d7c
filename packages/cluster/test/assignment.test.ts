import { SUSPECT_FROM } from '@coji/durably-core/storage'
import { describe, expect, it } from 'vitest'
import { endAll, type Fleet, fleet, type Member } from './fleet'

async function started(members: readonly Member[], { clock }: Fleet): Promise<void> {
  for (const { durably } of members) durably.start()
  await clock.advance(1000)
}

async function statuses({ storage }: Fleet): Promise<readonly string[]> {
  const runs = await storage.getRuns({ jobNames: ['placed'] })
  return runs.map(({ status }) => status).reverse()
}

/** Each sign of life of the worker, one in five seconds, brings it at most three. */
const MOST_REFUSALS = 18

/** All runs that wait lose their workers, again and again. */
async function makeSuspects({ storage, clock }: Fleet): Promise<void> {
  for (let loss = 1; loss <= SUSPECT_FROM; loss++) {
    const own = { workerId: 'lost', claimToken: `loss ${loss}`, jobs: ['placed'], limit: 100, leaseMs: 1000 }
    await storage.claim({ ...own, holdsSuspect: false, events: [] })
    await storage.recover({
      ...{ deadWorkerId: 'lost', held: [], maxCrashes: 100, jitter: 0.5, limit: 100 },
      crashLimit: { error: 'lost', detail: { name: 'Lost' } },
      events: { pending: [], cancelled: [], failed: [] },
    })
    await clock.advance(60_000)
  }
}

/** To a worker that tells of itself once, and does nothing more. */
async function assignToGhost({ storage, clock }: Fleet, { durably }: Member): Promise<string> {
  const ghost = { workerId: 'ghost', presence: 'active', capacity: 9, labels: {}, codeVersion: null } as const
  await storage.cluster.placement.beat({ ...ghost, placedJobs: ['placed'], ttlMs: 5000 })
  const { id } = await durably.trigger('placed', 1)
  await clock.advance(1000)
  return id
}

const begunBy = (members: readonly Member[]) => members.map(({ begun }) => begun.length)

describe('a placed run', () => {
  it('goes to a worker that has room, and to nobody else', async () => {
    const all = fleet()
    const leader = all.join('leader', { concurrency: 1 })
    const workers = [all.join('a', { concurrency: 2, leads: false }), all.join('b', { concurrency: 3, leads: false })]
    const members = [leader, ...workers]
    await started(members, all)
    for (let n = 0; n < 8; n++) await leader.durably.trigger('placed', n)
    await all.clock.advance(1000)
    expect(begunBy(members)).toEqual([1, 2, 3])
    expect(await statuses(all)).toEqual([...Array(6).fill('running'), 'pending', 'pending'])
    const [run] = await all.storage.getRuns({ statuses: ['running'] })
    expect(run).toMatchObject({ assignments: 1, leaderEpoch: 1, assignedWorkerId: run?.ownerId })
    await endAll(all.clock, members)
    expect(await statuses(all)).toEqual(Array(8).fill('completed'))
    for (const { durably } of members) await durably.stop()
  })

  it('tells of its way', async () => {
    const all = fleet()
    const leader = all.join('leader', { concurrency: 1 })
    const worker = all.join('a', { leads: false })
    await started([leader, worker], all)
    const { id } = await leader.durably.trigger('placed', 1)
    await all.clock.advance(1000)
    expect([...leader.told, ...worker.told].filter(({ runId }) => runId === id).map(({ type }) => type)).toEqual([
      'run:assign',
      'run:start',
    ])
    await endAll(all.clock, [leader, worker])
    for (const { durably } of [leader, worker]) await durably.stop()
  })

  it('is not offered again and again to a worker that has less room than the database knows', async () => {
    const all = fleet()
    const { placement } = all.storage.cluster
    let offers = 0
    const tooMuch: typeof placement = {
      ...placement,
      getWorkers: async () => (await placement.getWorkers()).map((each) => ({ ...each, capacity: each.capacity + 1 })),
      async assign(...args) {
        offers += 1
        if (offers > 100) throw new Error('This would never end.')
        return placement.assign(...args)
      },
    }
    const storage = { ...all.storage, cluster: { ...all.storage.cluster, placement: tooMuch } }
    const worker = all.join('a', { concurrency: 1, storage })
    await started([worker], all)
    for (let n = 0; n < 3; n++) await worker.durably.trigger('placed', n)
    await all.clock.advance(20_000)
    expect([worker.begun, offers < 10]).toEqual([[0], true])
    await endAll(all.clock, [worker])
    await all.clock.advance(60_000)
    await endAll(all.clock, [worker])
    expect(worker.begun).toEqual([0, 1, 2])
    await worker.durably.stop()
  })

  it.each([{ concurrency: 1 }, { rateLimit: { max: 1, per: 3_600_000 } }])(
    'that has to wait for a limit of its worker, %o, does not hold up those of other jobs',
    async (job) => {
      const all = fleet()
      const worker = all.join('a', { concurrency: 3, job, hasOther: true })
      for (let n = 0; n < 8; n++) await worker.durably.trigger('placed', n)
      for (const name of ['first', 'second']) await worker.durably.trigger('other', name)
      await started([worker], all)
      await all.clock.advance(30_000)
      expect(worker.begun).toEqual([0, 'first', 'second'])
      expect(worker.told.filter(({ type }) => type === 'run:orphan').length).toBeLessThan(MOST_REFUSALS)
      await endAll(all.clock, [worker])
      await worker.durably.stop()
    },
  )

  it('is not held up by suspects that its worker does not take beside another one', async () => {
    const all = fleet()
    const worker = all.join('a')
    for (const payload of ['a suspect', 'one more suspect'])
      await worker.durably.trigger('placed', payload, { priority: 1 })
    await makeSuspects(all)
    await worker.durably.trigger('placed', 'other')
    await started([worker], all)
    await all.clock.advance(5000)
    expect(worker.begun).toEqual([expect.stringMatching('suspect'), 'other'])
    await endAll(all.clock, [worker])
    expect([...worker.begun].sort()).toEqual(['a suspect', 'one more suspect', 'other'])
    await worker.durably.stop()
  })

  it('needs a worker with its labels, also where nobody leads', async () => {
    const all = fleet()
    const job = { placement: { labels: { gpu: 'yes' } } }
    const members = [all.join('plain', { job }), all.join('gpu', { job, leads: false, labels: { gpu: 'yes', a: 'b' } })]
    await started(members, all)
    for (let n = 0; n < 4; n++) await members[0]?.durably.trigger('placed', n)
    await all.clock.advance(1000)
    expect(begunBy(members)).toEqual([0, 2])
    await members[0]?.durably.stop()
    await all.clock.advance(60_000)
    await endAll(all.clock, members)
    expect(begunBy(members)).toEqual([0, 4])
    await members[1]?.durably.stop()
  })

  it('of a tenant with few comes between those of one with many, by its own priority', async () => {
    const all = fleet()
    const member = all.join('a', { concurrency: 1 })
    for (let n = 0; n < 50; n++) await member.durably.trigger('placed', `many ${n}`, { tenant: 'many' })
    await member.durably.trigger('placed', 'few low', { tenant: 'few' })
    await member.durably.trigger('placed', 'few high', { tenant: 'few', priority: 1 })
    await member.durably.trigger('placed', 'nobody')
    await started([member], all)
    for (let n = 0; n < 8; n++) {
      for (const end of member.inHand.values()) end(null)
      member.inHand.clear()
      await all.clock.advance(1000)
    }
    expect(member.begun.slice(0, 3)).toContain('few high')
    expect(member.begun).toContain('few low')
    expect(member.begun.slice(0, 3)).toContain('nobody')
    await endAll(all.clock, [member])
    await member.durably.stop()
  })

  it('takes the slot of its key when it is assigned', async () => {
    const all = fleet()
    const members = [all.join('a'), all.join('b', { leads: false })]
    await started(members, all)
    const keyed = { concurrencyKey: 'k', concurrencyLimit: 2 }
    for (let n = 0; n < 4; n++) await members[0]?.durably.trigger('placed', n, keyed)
    await all.clock.advance(5000)
    expect(begunBy(members).reduce((sum, count) => sum + count)).toBe(2)
    await endAll(all.clock, members)
    expect(await statuses(all)).toEqual(Array(4).fill('completed'))
    for (const { durably } of members) await durably.stop()
  })

  it('of a paused job is not assigned', async () => {
    const all = fleet()
    const member = all.join('a')
    await started([member], all)
    await member.durably.pauseJob('placed', { scope: 'database' })
    await member.durably.trigger('placed', 1)
    await all.clock.advance(5000)
    expect(await statuses(all)).toEqual(['pending'])
    await member.durably.resumeJob('placed', { scope: 'database' })
    await all.clock.advance(2000)
    expect(await statuses(all)).toEqual(['running'])
    await endAll(all.clock, [member])
    await member.durably.stop()
  })

  it('leaves the runs of other jobs to whoever claims them', async () => {
    const all = fleet()
    const members = [all.join('a', { concurrency: 1 })]
    await started(members, all)
    await members[0]?.durably.trigger('plain', 1)
    await all.clock.advance(1000)
    expect(await all.storage.getRuns({ jobNames: ['plain'] })).toMatchObject([{ status: 'running', leaderEpoch: null }])
    await members[0]?.durably.trigger('placed', 2)
    await all.clock.advance(1000)
    expect(await statuses(all)).toEqual(['pending'])
    await endAll(all.clock, members)
    expect(await statuses(all)).toEqual(['completed'])
    await members[0]?.durably.stop()
  })
})

describe('an assignment that is not started', () => {
  it('is declined by a worker that stops, and made anew', async () => {
    const all = fleet()
    const members = [all.join('a', { concurrency: 1 }), all.join('b', { concurrency: 1, leads: false })]
    await started(members, all)
    const [a, b] = members as [Member, Member]
    await a.durably.trigger('plain', 'busy')
    await a.durably.trigger('plain', 'busy too')
    await all.clock.advance(1000)
    // As if the leader had not known that it is busy.
    const run = await a.durably.trigger('placed', 1)
    const lead = { name: 'leader', workerId: a.cluster.status().workerId, epoch: 1 }
    const { version } = (await all.storage.getRun(run.id)) ?? { version: 0 }
    await all.storage.cluster.placement.assign(lead, [{ runId: run.id, version, workerId: 'b', events: [] }])
    await all.clock.advance(2000)
    expect(await all.storage.getRun(run.id)).toMatchObject({ status: 'orphaned', assignments: 1 })
    await endAll(all.clock, members)
    expect(await all.storage.getRun(run.id)).toMatchObject({ status: 'completed', assignments: 2 })
    expect(b.told.some(({ type, runId }) => type === 'run:orphan' && runId === run.id)).toBe(true)
    for (const { durably } of members) await durably.stop()
  })

  it('is taken back from a worker that is gone', async () => {
    const all = fleet()
    const leader = all.join('leader', { concurrency: 1 })
    await started([leader], all)
    const id = await assignToGhost(all, leader)
    expect(await all.storage.getRun(id)).toMatchObject({ status: 'assigned', assignedWorkerId: 'ghost' })
    expect(await leader.durably.explain(id)).toContain('was assigned to worker ghost')
    await all.clock.advance(15_000)
    expect(await all.storage.getRun(id)).toMatchObject({ status: 'running', assignments: 2, ownerId: 'leader' })
    await endAll(all.clock, [leader])
    await leader.durably.stop()
  })
})

describe('reassignAfterSeconds', () => {
  it('is heard of by the leader while it runs', async () => {
    const all = fleet()
    const leader = all.join('leader', { concurrency: 1 })
    await started([leader], all)
    await leader.durably.settings.set({ reassignAfterSeconds: 3600 })
    await all.clock.advance(10_000)
    const id = await assignToGhost(all, leader)
    await all.clock.advance(120_000)
    expect(await all.storage.getRun(id)).toMatchObject({ status: 'assigned' })
    await leader.durably.settings.set({ reassignAfterSeconds: null })
    await all.clock.advance(15_000)
    expect(await all.storage.getRun(id)).toMatchObject({ status: 'running', assignments: 2 })
    await endAll(all.clock, [leader])
    await leader.durably.stop()
  })
})

describe('one that leads once', () => {
  it('takes back what is overdue by what is set', async () => {
    const all = fleet()
    const first = all.join('first')
    await first.durably.settings.set({ reassignAfterSeconds: 3600 })
    await assignToGhost(all, first)
    expect(await first.cluster.lead()).toEqual({ assigned: 1, orphaned: 0 })
    await all.clock.stall(60_000)
    expect(await all.join('second').cluster.lead()).toEqual({ assigned: 0, orphaned: 0 })
    await all.clock.stall(3_600_000)
    expect(await all.join('third').cluster.lead()).toEqual({ assigned: 0, orphaned: 1 })
  })
})

describe('without a leader', () => {
  it('a fleet that never had one claims at once', async () => {
    const all = fleet()
    const member = all.join('a', { leads: false })
    await started([member], all)
    const { id } = await member.durably.trigger('placed', 1)
    await all.clock.advance(1000)
    expect(await all.storage.getRun(id)).toMatchObject({ status: 'running', assignments: 0, leaderEpoch: null })
    await endAll(all.clock, [member])
    await member.durably.stop()
  })

  it('any worker claims after 30 s, and frees what was assigned', async () => {
    const all = fleet()
    const [leader, worker] = [all.join('leader', { concurrency: 1 }), all.join('a', { leads: false })]
    await started([leader], all)
    const { placement } = all.storage.cluster
    const ghost = { workerId: 'ghost', presence: 'active', capacity: 1, labels: {}, codeVersion: null } as const
    await placement.beat({ ...ghost, placedJobs: ['placed'], ttlMs: 1000 })
    const assigned = [await leader.durably.trigger('placed', 1), await leader.durably.trigger('placed', 2)]
    await all.clock.advance(500)
    await endAll(all.clock, [leader])
    expect([...(await statuses(all))].sort()).toEqual(['assigned', 'completed'])
    await leader.durably.stop()
    await started([worker], all)
    await worker.durably.trigger('placed', 3)
    await all.clock.advance(25_000)
    expect(worker.begun).toEqual([])
    await all.clock.advance(10_000)
    expect(worker.begun.length).toBe(2)
    await endAll(all.clock, [worker])
    expect(await statuses(all)).toEqual(Array(assigned.length + 1).fill('completed'))
    await worker.durably.stop()
  })

  it('what was assigned is freed after the time that is set, also when that is changed meanwhile', async () => {
    const all = fleet()
    const [leader, worker] = [all.join('leader', { concurrency: 1 }), all.join('a', { leads: false })]
    await started([leader], all)
    await worker.durably.settings.set({ reassignAfterSeconds: 3600 })
    await assignToGhost(all, leader)
    await leader.durably.stop()
    await started([worker], all)
    await all.clock.advance(120_000)
    expect(await statuses(all)).toEqual(['assigned'])
    await worker.durably.settings.set({ reassignAfterSeconds: 60 })
    await all.clock.advance(10_000)
    expect(await statuses(all)).toEqual(['running'])
    await endAll(all.clock, [worker])
    await worker.durably.stop()
  })

  it('runs until idle on its own', async () => {
    const all = fleet()
    const member = all.join('a', { job: {}, leads: false })
    await member.durably.trigger('placed', 1)
    const draining = member.durably.runUntilIdle()
    await all.clock.advance(1)
    await endAll(all.clock, [member])
    expect(await draining).toEqual({ ran: 1, nextWakeAt: null })
  })
})

describe('placement', () => {
  it('is refused where it cannot be kept', () => {
    expect(() => fleet().join('a', { job: { placement: 'somebody' as never } })).toThrow("must be 'leader'")
    expect(() => fleet().join('a', { job: { placement: { labels: { a: 1 } as never } } })).toThrow('Label')
    expect(() => fleet().join('a', { job: { scope: 'database', concurrency: 1 } })).toThrow('does not claim')
  })
})
