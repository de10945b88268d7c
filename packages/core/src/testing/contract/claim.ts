import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { FAR_MS, LEASE_MS, newId, newRun, waitingStep } from './builders'
import { casesOf } from './contract-case'
import { assertApart, assertInstant } from './instants'

export const CLAIM_CASES = casesOf('required', 'claim', {
  'a claimed run shows its lease': async (kit) => {
    const run = await kit.enqueue()
    const [claimed] = await kit.claim({ workerId: 'w-7', claimToken: 'token-7' })
    const lease = { ownerId: 'w-7', claimToken: 'token-7', leaseEpoch: 1, leaderEpoch: null, commitNo: 0 }
    assertMatches(claimed ?? null, { id: run.id, status: 'running', attempt: 1, ...lease }, 'the claimed run')
    assertEqual(await kit.run(run.id), claimed, 'getRun and the answer')
    assert((claimed?.version ?? 0) > run.version, 'version should have grown')
  },

  'a claim sets the instants by the clock of the storage': async (kit) => {
    const { run } = await kit.start()
    assertInstant(run.startedAt, 'startedAt')
    assertInstant(run.heartbeatAt, 'heartbeatAt')
    assertApart(run.startedAt, run.leaseUntil, LEASE_MS)
    assertMatches(run, { deadlineAt: null, finishedAt: null, waitingFor: null }, 'the claimed run')
  },

  'higher priority comes first, then what is available earlier, then the lower id': async (kit) => {
    const ids = Array.from({ length: 6 }, () => newId())
    const [a = '', b = '', c = '', d = '', e = '', f = ''] = ids
    const start = { afterMs: -2000 }
    await kit.storage.enqueue([
      newRun({ id: f, priority: -1, start: { afterMs: -4000 } }),
      newRun({ id: d, start }),
      newRun({ id: b, start }),
      newRun({ id: c, start }),
      newRun({ id: e, start: { afterMs: -3000 } }),
      newRun({ id: a, priority: 10, start: { afterMs: -1000 } }),
    ])
    const order: string[] = []
    for (let index = 0; index < 6; index++) order.push(...(await kit.claimedIds({ limit: 1 })))
    assertEqual(order, [a, e, b, c, d, f], 'order of single claims')
  },

  'one claim takes the first runs in order': async (kit) => {
    const start = { at: '2026-01-01T00:00:00.000Z' }
    const runs = [newRun({ start }), newRun({ start, priority: 3 }), newRun({ start, priority: 2 }), newRun({ start })]
    await kit.storage.enqueue(runs)
    const ids = await kit.claimedIds({ limit: 3 })
    assertEqual(ids, [runs[1]?.id, runs[2]?.id, runs[0]?.id], 'ids claimed')
    assertEqual(await kit.claimedIds(), [runs[3]?.id], 'ids left')
  },

  'a claim takes no more than its limit': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 5 }, () => newRun()))
    assertEqual((await kit.claim({ limit: 0 })).length, 0, 'runs claimed with limit 0')
    assertEqual((await kit.claim({ limit: 2 })).length, 2, 'runs claimed with limit 2')
    assertEqual((await kit.claim({ limit: 10 })).length, 3, 'runs claimed with limit 10')
    assertEqual(await kit.claim({ limit: 10 }), [], 'runs claimed when there are none')
  },

  'only jobs the worker knows are claimed': async (kit) => {
    const other = await kit.enqueue({ jobName: 'other', priority: 9 })
    const run = await kit.enqueue()
    assertEqual(await kit.claim({ jobs: [] }), [], 'runs claimed without jobs')
    assertEqual(await kit.claimedIds({ jobs: ['job', 'third'] }), [run.id], 'ids claimed')
    assertMatches(await kit.run(other.id), { status: 'pending', version: other.version }, 'the run of another job')
  },

  'a run that is not due is not claimed': async (kit) => {
    await kit.enqueue({ start: { afterMs: FAR_MS }, priority: 9 })
    await kit.enqueue({ start: { at: '2099-01-01T00:00:00.000Z' } })
    assertEqual(await kit.claim({ limit: 10 }), [], 'runs claimed')
  },

  'a run due since long is claimed': async (kit) => {
    const run = await kit.enqueue({ start: { at: '2001-01-01T00:00:00.000Z' } })
    assertEqual(await kit.claimedIds(), [run.id], 'ids claimed')
  },

  'a running run is not claimed again, not even after its lease': async (kit) => {
    await kit.enqueue()
    await kit.hold({ leaseMs: -1000 })
    assertEqual(await kit.claim({ limit: 10 }), [], 'runs claimed')
  },

  'an ended run is not claimed': async (kit) => {
    for (const kind of ['complete', 'fail', 'timeOut', 'cancelled'] as const) {
      const holder = await kit.start({ jobName: 'job' })
      await holder.leave(kind)
      assertEqual(await kit.claim(), [], `runs claimed after ${kind}`)
    }
  },

  'a parked, cancelled or suspended run is not claimed': async (kit) => {
    await kit.order('park', (await kit.enqueue()).id)
    await kit.order('cancel', (await kit.enqueue()).id)
    const holder = await kit.start({ jobName: 'job' })
    await holder.leave('suspend')
    assertEqual(await kit.claim({ limit: 10 }), [], 'runs claimed')
  },

  'of 16 claimers at once no two get the same run': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 24 }, () => newRun()))
    const claims = await Promise.all(Array.from({ length: 16 }, () => kit.claimedIds({ limit: 2 })))
    const ids = claims.flat()
    assertEqual(new Set(ids).size, ids.length, 'different runs claimed')
    assert(
      claims.every(({ length }) => length <= 2),
      'no claim should get more than its limit of 2',
    )
    const rest = await kit.claimedIds()
    assertEqual(new Set([...ids, ...rest]).size, 24, 'runs claimed in the end')
  },

  'each claim takes a lease with a higher epoch and its own token': async (kit) => {
    const first = await kit.start({ jobName: 'job' })
    await first.commit()
    await first.leave('release')
    const second = await kit.hold({ claimToken: 'second' })
    assertMatches(second.run, { id: first.id, leaseEpoch: 2, claimToken: 'second', commitNo: 0 }, 'the second claim')
  },

  'startedAt and the deadline are those of the first start': async (kit) => {
    const first = await kit.start({ jobName: 'job', timeoutMs: FAR_MS })
    assertApart(first.run.startedAt, first.run.deadlineAt, FAR_MS)
    await first.leave('release')
    const { run } = await kit.hold()
    const { startedAt, deadlineAt } = first.run
    assertMatches(run, { startedAt, deadlineAt }, 'the second claim')
  },

  'a claim ends the waiting': async (kit) => {
    const first = await kit.start({ jobName: 'job' })
    await first.leave('suspend', {}, { steps: [waitingStep({ name: 'nap', due: { inMs: -1 } })] })
    const { run } = await kit.hold()
    assertMatches(run, { id: first.id, waitingFor: null, attempt: 1 }, 'the second claim')
  },

  'a claim crosses tenants': async (kit) => {
    await kit.storage.enqueue([newRun({ tenant: 'a' }), newRun({ tenant: 'b' })])
    assertEqual((await kit.claim({ limit: 10 })).map(({ tenant }) => tenant).sort(), ['a', 'b'], 'tenants')
  },

  'a repeated claim finds what it claimed and claims nothing': async (kit) => {
    await kit.storage.enqueue([newRun(), newRun(), newRun(), newRun()])
    const claimed = await kit.claim({ claimToken: 'mine', limit: 2 })
    await kit.claim({ claimToken: 'other' })
    const again = await kit.claim({ claimToken: 'mine', limit: 4, repeat: true })
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
    assertEqual([...again].sort(byId), [...claimed].sort(byId), 'runs of the repeated claim')
    assertEqual(await kit.claim({ claimToken: 'never', limit: 4, repeat: true }), [], 'runs of an unknown token')
    assertEqual((await kit.storage.counts({})).pending, 1, 'pending runs')
  },

  'a repeated claim leaves out what has been left since': async (kit) => {
    const holder = await kit.start({}, { claimToken: 'mine' })
    await holder.leave('complete')
    assertEqual(await kit.claim({ claimToken: 'mine', repeat: true }), [], 'runs of the repeated claim')
  },

  'a released run keeps its place in the queue': async (kit) => {
    const first = await kit.start({ jobName: 'job' })
    const second = await kit.enqueue()
    await first.leave('release')
    assertEqual(await kit.claimedIds(), [first.id, second.id], 'ids claimed')
  },

  'a far longer queue of other jobs is no obstacle': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 300 }, () => newRun({ jobName: 'other', priority: 9 })))
    const run = await kit.enqueue()
    assertEqual(itemAt(await kit.claim(), 0, 'claimed runs').id, run.id, 'id claimed')
  },
})
