import type { Lead, WaitingQuery, WaitingRun, WorkerBeat, WorkerRecord } from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { FAR_MS, newRun } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'
import { leadOf } from './leads'

export function newBeat(over: Partial<WorkerBeat> = {}): WorkerBeat {
  const own = { workerId: 'w-1', presence: 'active', capacity: 4, placedJobs: ['job'], codeVersion: null } as const
  return { ...own, labels: {}, ttlMs: FAR_MS, ...over }
}

async function workerOf(kit: Kit, workerId = 'w-1'): Promise<WorkerRecord> {
  const found = (await kit.placement.getWorkers()).find((worker) => worker.workerId === workerId)
  assert(found !== undefined, `getWorkers: worker ${workerId} should be there`)
  return found
}

export async function waiting(kit: Kit, over: Partial<WaitingQuery> = {}): Promise<readonly WaitingRun[]> {
  return (await look(kit, over)).runs
}

function look(kit: Kit, over: Partial<WaitingQuery> = {}) {
  return kit.placement.waiting({ jobs: ['job'], suspectsOf: ['job'], from: [], tenants: 10, limitEach: 10, ...over })
}

const idsOf = (runs: readonly WaitingRun[]) => runs.map(({ runId }) => runId)

export const WORKER_CASES = casesOf('cluster', 'workers', {
  'one tells of itself, and again': async (kit) => {
    const labels = { gpu: 'yes', zone: 'a"b' }
    await kit.placement.beat(newBeat({ labels, codeVersion: 'v1', placedJobs: ['a', 'b'] }))
    const first = await workerOf(kit)
    assertMatches(first, { labels, codeVersion: 'v1', placedJobs: ['a', 'b'], capacity: 4, presence: 'active' }, 'it')
    assertMatches(first, { isAlive: true, assigned: 0, running: 0, holdsSuspect: false }, 'what it holds')
    assertInstant(first.firstBeatAt, 'its first beat')
    await kit.placement.beat(newBeat({ presence: 'draining', capacity: 2 }))
    const second = await workerOf(kit)
    assertMatches(second, { presence: 'draining', capacity: 2, labels: {}, firstBeatAt: first.firstBeatAt }, 'it later')
    assert(second.lastBeatAt >= first.lastBeatAt, 'the last beat goes on')
    await kit.reopen()
    assertMatches(await workerOf(kit), { presence: 'draining' }, 'after a restart')
  },

  'one that is silent, or has left, is not alive': async (kit) => {
    await kit.placement.beat(newBeat({ ttlMs: -1000 }))
    await kit.placement.beat(newBeat({ workerId: 'w-2', presence: 'detached' }))
    await kit.placement.beat(newBeat({ workerId: 'w-3', presence: 'draining' }))
    const alive = (await kit.placement.getWorkers()).map(({ workerId, isAlive }) => [workerId, isAlive])
    assertEqual(
      alive,
      [
        ['w-1', false],
        ['w-2', false],
        ['w-3', true],
      ],
      'who is alive',
    )
  },

  'what one runs is counted': async (kit) => {
    await kit.placement.beat(newBeat())
    const holder = await kit.start({}, { workerId: 'w-1' })
    assertMatches(await workerOf(kit), { running: 1, assigned: 0 }, 'while it runs')
    await holder.leave('complete')
    assertMatches(await workerOf(kit), { running: 0 }, 'after its end')
  },

  'one that is silent for long and holds nothing is forgotten': async (kit) => {
    await kit.placement.beat(newBeat({ ttlMs: -1000 }))
    await kit.placement.beat(newBeat({ workerId: 'w-2', ttlMs: -1000 }))
    await kit.placement.beat(newBeat({ workerId: 'w-3' }))
    await kit.start({}, { workerId: 'w-2' })
    const lead = await leadOf(kit)
    assertEqual(await kit.placement.forgetWorkers(lead, FAR_MS), 0, 'not silent for so long')
    assertEqual(await kit.placement.forgetWorkers(lead, -1000), 1, 'those that are gone')
    const left = (await kit.placement.getWorkers()).map(({ workerId }) => workerId)
    assertEqual(left, ['w-2', 'w-3'], 'who is left')
  },

  'who has lost the lead can forget nobody': async (kit) => {
    await kit.placement.beat(newBeat({ ttlMs: -1000 }))
    const lost = await leadOf(kit, 'l-1', -1000)
    const lead = await leadOf(kit, 'l-2')
    for (const by of [lost, { ...lead, epoch: lead.epoch - 1 }, { ...lead, workerId: 'l-1' }]) {
      assertEqual(await kit.placement.forgetWorkers(by, -1000), 0, 'by another one')
    }
    assertEqual(await kit.placement.forgetWorkers(lead, -1000), 1, 'by who leads')
  },

  'jobs are known by the code that has them': async (kit) => {
    const a = { name: 'a', version: '', options: '{"placed":false}' }
    await kit.placement.noteJobs('v1', [a, { name: 'b', version: '1', options: '{}' }])
    await kit.placement.noteJobs('v2', [{ ...a, options: '{"placed":true}' }])
    await kit.placement.noteJobs('v1', [])
    await kit.placement.noteJobs('v1', [a])
    const jobs = await kit.placement.getJobs()
    for (const { lastSeenAt } of jobs) assertInstant(lastSeenAt, 'when it was seen')
    const seen = jobs.map(({ name, version, codeVersion, options }) => [name, version, codeVersion, options])
    assertEqual(
      seen,
      [
        ['a', '', 'v1', '{"placed":false}'],
        ['a', '', 'v2', '{"placed":true}'],
        ['b', '1', 'v1', '{}'],
      ],
      'the jobs',
    )
  },

  'jobs are forgotten with the last worker of their code': async (kit) => {
    const a = { name: 'a', version: '', options: '{}' }
    for (const codeVersion of ['', 'v1', 'v2', 'v3']) await kit.placement.noteJobs(codeVersion, [a])
    await kit.placement.beat(newBeat({ codeVersion: 'v1', ttlMs: -1000 }))
    await kit.placement.beat(newBeat({ workerId: 'w-2', codeVersion: 'v2' }))
    await kit.placement.beat(newBeat({ workerId: 'w-3' }))
    const lead = await leadOf(kit)
    const versionsAfter = async (by: Lead, silentForMs: number) => {
      await kit.placement.forgetWorkers(by, silentForMs)
      return (await kit.placement.getJobs()).map(({ codeVersion }) => codeVersion)
    }
    assertEqual(await versionsAfter(lead, FAR_MS), ['', 'v1', 'v2', 'v3'], 'seen a short while ago')
    const lost = { ...lead, epoch: lead.epoch - 1 }
    assertEqual(await versionsAfter(lost, -1000), ['', 'v1', 'v2', 'v3'], 'by who has lost the lead')
    assertEqual(await versionsAfter(lead, -1000), ['', 'v2'], 'those of workers that are there')
  },
})

export const WAITING_CASES = casesOf('cluster', 'waiting', {
  'what is due and of a wanted job is there, as it is': async (kit) => {
    const { id: runId, version, availableAt } = await kit.enqueue({ priority: 3 })
    await kit.enqueue({ jobName: 'other' })
    await kit.enqueue({ start: { afterMs: FAR_MS } })
    const [run] = await waiting(kit)
    const expected = {
      runId,
      version,
      availableAt: availableAt ?? '',
      jobName: 'job',
      tenant: '',
      priority: 3,
      isSuspect: false,
    }
    assertMatches(run ?? null, { ...expected, concurrencyKey: null }, 'the run')
    assertEqual(idsOf(await waiting(kit)), [runId], 'nothing else')
  },

  'what runs, is parked or has ended is not': async (kit) => {
    await kit.start({ jobName: 'job' }, { jobs: ['job'] })
    const parked = await kit.enqueue()
    await kit.order('park', parked.id)
    const cancelled = await kit.enqueue()
    await kit.order('cancel', cancelled.id)
    assertEqual(await waiting(kit), [], 'what waits')
  },

  'a tenant with few runs is found behind one with many, each by priority and age': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 30 }, () => newRun({ tenant: 'many' })))
    const low = await kit.enqueue({ tenant: 'few' })
    const high = await kit.enqueue({ tenant: 'few', priority: 1 })
    const nobody = await kit.enqueue()
    const runs = await waiting(kit, { limitEach: 2 })
    const of = (tenant: string) => idsOf(runs.filter((run) => run.tenant === tenant))
    assertEqual([of('many').length, of('few'), of('')], [2, [high.id, low.id], [nobody.id]], 'by tenant')
  },

  'tenants are gone through in turns': async (kit) => {
    for (const tenant of ['a', 'b', 'c']) await kit.enqueue({ tenant })
    const first = await look(kit, { tenants: 2 })
    assertEqual(
      first.runs.map(({ tenant }) => tenant),
      ['a', 'b'],
      'the first turn',
    )
    assertEqual(first.upTo, [{ jobName: 'job', tenant: 'b' }], 'where it ended')
    const second = await look(kit, { tenants: 2, from: first.upTo })
    assertEqual(
      second.runs.map(({ tenant }) => tenant),
      ['c'],
      'the second turn',
    )
    assertEqual(second.upTo, [], 'there are no more')
  },

  'runs of a busy key are left out': async (kit) => {
    const key = { concurrencyKey: 'k', concurrencyLimit: 1, tenant: 't' }
    await kit.enqueue(key)
    await kit.hold()
    await kit.enqueue(key)
    const free = await kit.enqueue({ concurrencyKey: 'other', concurrencyLimit: 3, tenant: 't' })
    const runs = await waiting(kit)
    assertEqual(idsOf(runs), [free.id], 'what may start')
    assertMatches(itemAt(runs, 0, 'runs'), { concurrencyKey: 'other', roomOfKey: 3 }, 'its key')
  },

  'a suspect is told from others': async (kit) => {
    const [suspect = ''] = await kit.suspects(1)
    assertMatches((await waiting(kit))[0] ?? null, { runId: suspect, isSuspect: true }, 'the suspect')
  },

  'what is behind many suspects is found where nobody takes those': async (kit) => {
    for (const tenant of ['', 't']) {
      const jobName = `job of ${tenant}`
      const [suspect] = await kit.suspects(3, { jobName, tenant, priority: 9 })
      const other = await kit.enqueue({ jobName, tenant })
      const found = async (suspectsOf: string) => {
        return idsOf(await waiting(kit, { limitEach: 1, jobs: [jobName], suspectsOf: [suspectsOf] }))
      }
      assertEqual(await found(jobName), [suspect], 'where somebody takes one')
      assertEqual(await found('another'), [other.id], 'where nobody does')
    }
  },

  'what is orphaned is found behind suspects that nobody takes': async (kit) => {
    const lead = await leadOf(kit)
    const ids = [...(await kit.suspects(1, { priority: 9 })), (await kit.enqueue()).id]
    for (const runId of ids) {
      const { version } = await kit.run(runId)
      const runs = [{ runId, version: version + 1 }]
      await kit.placement.assign(lead, [{ runId, version, workerId: 'w-1', events: [] }])
      await kit.placement.decline({ workerId: 'w-1', runs, events: [] })
    }
    assertEqual(idsOf(await waiting(kit, { limitEach: 1 })), ids.slice(0, 1), 'where somebody takes one')
    assertEqual(idsOf(await waiting(kit, { limitEach: 1, suspectsOf: [] })), ids.slice(1), 'where nobody does')
  },

  'what tenants have in hand is counted': async (kit) => {
    await kit.enqueue({ tenant: 'a' })
    await kit.enqueue({ tenant: 'a' })
    await kit.enqueue({ tenant: 'b' })
    await kit.claim({ limit: 2 })
    await kit.start({ tenant: 'b' })
    assertEqual((await look(kit)).loads, [{ tenant: 'a', held: 2 }], 'of this job')
  },
})
