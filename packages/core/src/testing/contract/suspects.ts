import { type RunRecord, SUSPECT_FROM } from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { newRun } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'

const JOBS = ['job', 'bad'] as const

/** One worker that has a suspect and other runs, and is gone. */
async function lostTogether(kit: Kit, neighbours: number) {
  const [suspect = ''] = await kit.suspects(1, { jobName: 'bad' })
  const ids = Array.from({ length: neighbours }, () => newRun())
  await kit.storage.enqueue(ids)
  const claimed = await kit.claim({ workerId: 'gone', jobs: JOBS, limit: 100, leaseMs: -1000 })
  assertEqual(claimed.length, 1 + neighbours, 'runs that the worker had')
  return { suspect, neighbours: ids.map(({ id }) => id) }
}

function byId(runs: readonly RunRecord[]): Map<string, RunRecord> {
  return new Map(runs.map((run) => [run.id, run]))
}

export const SUSPECT_CASES = casesOf('required', 'suspects', {
  'a claim takes one of them, and other runs past the rest': async (kit) => {
    const [first, second, third] = await kit.suspects(3)
    const others = [await kit.enqueue(), await kit.enqueue()].map(({ id }) => id)
    assertEqual(await kit.claimedIds(), [first, ...others], 'ids of the first claim')
    assertEqual(await kit.claimedIds({ workerId: 'worker-2' }), [second], 'ids of the second claim')
    assertEqual(await kit.claimedIds({ workerId: 'worker-3' }), [third], 'ids of the third claim')
  },

  'a claim of a worker that holds one takes none': async (kit) => {
    const [suspect] = await kit.suspects(1)
    assertEqual(await kit.claim({ holdsSuspect: true, limit: 10 }), [], 'runs claimed where there are no others')
    const other = await kit.enqueue()
    assertEqual(await kit.claimedIds({ holdsSuspect: true }), [other.id], 'ids claimed by who holds one')
    assertEqual(await kit.claimedIds(), [suspect], 'ids claimed by who holds none')
  },

  'a claim takes them in the order of all runs': async (kit) => {
    const [low] = await kit.suspects(1, { jobName: 'bad', priority: -1 })
    const [high] = await kit.suspects(1, { jobName: 'bad', priority: 1 })
    const other = await kit.enqueue()
    assertEqual(await kit.claimedIds({ jobs: JOBS, limit: 1 }), [high], 'id of the first claim')
    assertEqual(await kit.claimedIds({ jobs: JOBS, limit: 1 }), [other.id], 'id of the second claim')
    assertEqual(await kit.claimedIds({ jobs: JOBS, limit: 1 }), [low], 'id of the third claim')
  },

  'a claim finds what is behind many of them': async (kit) => {
    const suspects = await kit.suspects(40, { priority: 9 })
    const others = Array.from({ length: 5 }, () => newRun())
    await kit.storage.enqueue(others)
    const ids = await kit.claimedIds({ limit: 4 })
    assertEqual(ids, [suspects[0], ...others.slice(0, 3).map(({ id }) => id)], 'ids claimed')
    assertEqual(await kit.claimedIds({ limit: 4, holdsSuspect: true }), [others[3]?.id, others[4]?.id], 'the rest')
  },

  'a claim finds what is behind many of them that share its key': async (kit) => {
    const keyed = { concurrencyKey: 'key', concurrencyLimit: 2 } as const
    const suspects = await kit.suspects(40, { ...keyed, priority: 9, concurrencyLimit: 50 })
    const others = Array.from({ length: 3 }, () => newRun(keyed))
    await kit.storage.enqueue(others)
    const holding = await kit.claim({ limit: 4, holdsSuspect: true })
    const expected = [others[0]?.id, others[1]?.id]
    assertEqual(holding.map(({ id }) => id).sort(), expected, 'ids claimed by who holds one')
    assertEqual(holding.map(({ concurrencySlot }) => concurrencySlot).sort(), [0, 1], 'slots')
    assertEqual(await kit.claimedIds({ limit: 4 }), [suspects[0]], 'ids claimed by who holds none')
  },

  'a claim that cannot have the first for its key takes the next': async (kit) => {
    const [blocked] = await kit.suspects(1, { jobName: 'bad', concurrencyKey: 'key', priority: 9 })
    await kit.start({ concurrencyKey: 'key' })
    const [next] = await kit.suspects(1)
    assertEqual(await kit.claimedIds({ jobs: JOBS }), [next], 'ids claimed')
    assertMatches(await kit.run(blocked ?? ''), { status: 'pending' }, 'the first')
  },

  'recover counts a lost worker for the suspect and spares its neighbours': async (kit) => {
    const { suspect, neighbours } = await lostTogether(kit, 3)
    const recovered = byId(await kit.recover())
    assertEqual(recovered.size, 4, 'runs recovered')
    assertMatches(recovered.get(suspect) ?? null, { crashCount: SUSPECT_FROM + 1 }, 'the suspect')
    for (const id of neighbours) {
      const run = await kit.run(id)
      assertMatches(run, { status: 'pending', crashCount: 0, leaseEpoch: 2, availableAt: run.createdAt }, 'a neighbour')
    }
  },

  'recover judges all runs of a worker alike, one by one or by name': async (kit) => {
    const { suspect, neighbours } = await lostTogether(kit, 3)
    for (const id of neighbours.slice(0, 2)) {
      const run = itemAt(await kit.recover({ limit: 1 }), 0, 'recovered runs')
      assertMatches(run, { id, crashCount: 0 }, 'a neighbour')
    }
    const rest = byId(await kit.recover({ deadWorkerId: 'gone' }))
    assertMatches(rest.get(neighbours[2] ?? '') ?? null, { crashCount: 0 }, 'the last neighbour')
    assertMatches(rest.get(suspect) ?? null, { crashCount: SUSPECT_FROM + 1 }, 'the suspect')
  },

  'recover fails the suspect at the limit, and never a neighbour': async (kit) => {
    const { suspect, neighbours } = await lostTogether(kit, 2)
    const recovered = byId(await kit.recover({ maxCrashes: 1 }))
    assertMatches(recovered.get(suspect) ?? null, { status: 'failed' }, 'the suspect')
    for (const id of neighbours) {
      assertMatches(recovered.get(id) ?? null, { status: 'pending', crashCount: 0 }, 'a neighbour')
    }
  },

  'recover spares a neighbour whose suspect still has its lease': async (kit) => {
    const [suspect = ''] = await kit.suspects(1, { jobName: 'bad' })
    await kit.claim({ workerId: 'gone', jobs: ['bad'] })
    const { id } = await kit.startExpired({}, { workerId: 'gone' })
    const recovered = await kit.recover()
    assertEqual(
      recovered.map((run) => [run.id, run.crashCount]),
      [[id, 0]],
      'runs recovered and their counts',
    )
    assertMatches(await kit.run(suspect), { status: 'running', crashCount: SUSPECT_FROM }, 'the suspect')
  },

  'recover spares nobody for a suspect of another worker, or one that got further': async (kit) => {
    await kit.suspects(1, { jobName: 'bad' })
    const cleared = await kit.hold({ workerId: 'gone', jobs: ['bad'] })
    await cleared.commit({ hasProgressed: true })
    await kit.suspects(1, { jobName: 'bad' })
    await kit.hold({ workerId: 'alive', jobs: ['bad'] })
    await kit.startExpired({}, { workerId: 'gone' })
    const run = itemAt(await kit.recover(), 0, 'recovered runs')
    assertMatches(run, { crashCount: 1 }, 'the run that was lost')
  },

  'recover lets a neighbour go on at once, and from its second loss on a little later': async (kit) => {
    const { neighbours } = await lostTogether(kit, 1)
    await kit.recover()
    await kit.hold({ leaseMs: -1000 })
    await kit.recover()
    const [id = ''] = neighbours
    assertMatches(await kit.run(id), { crashCount: 1 }, 'a run that was lost alone')
    await kit.suspects(1, { jobName: 'worse' })
    const claimed = await kit.claim({ workerId: 'gone', jobs: ['job', 'worse'], limit: 2, leaseMs: -1000 })
    assertEqual(claimed.length, 2, 'runs that the worker had')
    await kit.recover()
    const run = await kit.run(id)
    assertMatches(run, { status: 'pending', crashCount: 1 }, 'the neighbour')
    assertInstant(run.availableAt, 'availableAt')
    assert(run.availableAt > run.updatedAt, 'it should be due later')
  },

  'recover lets those that were lost together come back one after the other': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 20 }, () => newRun()))
    await kit.claim({ limit: 100, leaseMs: -1000 })
    await kit.recover()
    await kit.claim({ limit: 100, leaseMs: -1000 })
    const recovered = await kit.recover()
    const instants = new Set(recovered.map(({ availableAt }) => availableAt))
    assert(instants.size > 10, `20 runs should be due at many instants, not at ${instants.size}`)
  },
})
