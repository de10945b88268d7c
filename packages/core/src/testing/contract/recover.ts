import { crashBackoffMs } from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { OUTCOME_KINDS, stepWrite } from './builders'
import { casesOf } from './contract-case'
import { assertApart, assertInstant } from './instants'
import type { Kit } from './kit'

const NO_LEASE = { ownerId: null, claimToken: null, leaseUntil: null } as const

/** Claims the run and loses it, this many times. */
async function crash(kit: Kit, times: number): Promise<void> {
  for (let count = 0; count < times; count++) {
    await kit.hold({ leaseMs: -1000 })
    await kit.recover({ maxCrashes: 100 })
  }
}

export const RECOVER_CASES = casesOf('required', 'recover', {
  'an expired run is pending again, in its old place': async (kit) => {
    const holder = await kit.startExpired({ jobName: 'job' })
    await holder.commit({ leaseMs: -1000, steps: [stepWrite({ status: 'started', output: null })] })
    const recovered = await kit.recover()
    const expected = { id: holder.id, status: 'pending', leaseEpoch: 2, crashCount: 1, attempt: 1 } as const
    const run = itemAt(recovered, 0, 'recovered runs')
    assertMatches(run, { ...expected, ...NO_LEASE, availableAt: holder.run.createdAt, waitingFor: null }, 'the run')
    assertMatches(run, { finishedAt: null, error: null, startedAt: holder.run.startedAt }, 'the run')
    assertEqual(await kit.run(holder.id), run, 'getRun and the answer')
    assert(run.version > holder.run.version + 1, 'version should have grown')
    assertEqual((await kit.storage.getSteps(holder.id)).length, 1, 'step rows kept')
    assertEqual(await kit.claimedIds(), [holder.id], 'ids claimed')
  },

  'a live lease is left alone': async (kit) => {
    const holder = await kit.start()
    assertEqual(await kit.recover(), [], 'recovered runs')
    assertEqual(await kit.run(holder.id), holder.run, 'the run')
  },

  'runs that are not running are left alone': async (kit) => {
    const ids: string[] = [(await kit.enqueue()).id]
    for (const kind of OUTCOME_KINDS) {
      const holder = await kit.startExpired()
      await holder.leave(kind, {}, { leaseMs: -1000 })
      ids.push(holder.id)
    }
    const before = await Promise.all(ids.map((id) => kit.snapshot(id)))
    assertEqual(await kit.recover(), [], 'recovered runs')
    assertEqual(await kit.recover({ deadWorkerId: 'worker-1' }), [], 'recovered runs of the dead worker')
    assertEqual(await Promise.all(ids.map((id) => kit.snapshot(id))), before, 'the runs')
  },

  'runs the worker holds itself are left alone': async (kit) => {
    const [mine, other] = [await kit.startExpired(), await kit.startExpired()]
    const recovered = await kit.recover({ held: [mine.id] })
    assertEqual(
      recovered.map(({ id }) => id),
      [other.id],
      'ids recovered',
    )
    assertEqual(await kit.recover({ held: [mine.id], deadWorkerId: 'worker-1' }), [], 'recovered runs of a dead worker')
    assertEqual(await kit.run(mine.id), mine.run, 'the run held')
  },

  'of a dead worker live leases are recovered, of others not even expired ones': async (kit) => {
    const dead = await kit.start({}, { workerId: 'dead' })
    const live = await kit.start({}, { workerId: 'alive' })
    const expired = await kit.startExpired({}, { workerId: 'alive' })
    const deadToo = await kit.startExpired({}, { workerId: 'dead' })
    const recovered = await kit.recover({ deadWorkerId: 'dead' })
    assertEqual(recovered.map(({ id }) => id).sort(), [dead.id, deadToo.id], 'ids recovered')
    for (const holder of [live, expired]) assertEqual(await kit.run(holder.id), holder.run, 'a run of another worker')
  },

  'no more than the limit at once': async (kit) => {
    for (let index = 0; index < 5; index++) await kit.startExpired()
    const counts = [await kit.recover({ limit: 2 }), await kit.recover({ limit: 2 }), await kit.recover({ limit: 9 })]
    assertEqual(
      counts.map(({ length }) => length),
      [2, 2, 1],
      'runs recovered in turn',
    )
  },

  'two recoveries at once take each run once': async (kit) => {
    for (let index = 0; index < 6; index++) await kit.startExpired()
    const recovered = (await Promise.all([kit.recover(), kit.recover(), kit.recover()])).flat()
    assertEqual(recovered.length, 6, 'runs recovered')
    assert(
      recovered.every(({ crashCount, leaseEpoch }) => crashCount === 1 && leaseEpoch === 2),
      'each run should be recovered once',
    )
  },

  'a run asked to cancel is cancelled without running again': async (kit) => {
    const holder = await kit.startExpired({ jobName: 'job', holdKeyWhileWaiting: true, concurrencyKey: 'key' })
    await kit.order('cancel', holder.id)
    const run = itemAt(await kit.recover({ maxCrashes: 1 }), 0, 'recovered runs')
    const expected = { status: 'cancelled', leaseEpoch: 2, crashCount: 1, concurrencySlot: null, output: null } as const
    assertMatches(run, { ...expected, ...NO_LEASE }, 'the run')
    assertInstant(run.finishedAt, 'finishedAt')
    assertEqual(await kit.claim(), [], 'runs claimed')
  },

  'the first crash costs no time, later ones wait longer and longer': async (kit) => {
    await kit.enqueue()
    await crash(kit, 1)
    const holder = await kit.hold({ leaseMs: -1000 })
    const run = itemAt(await kit.recover(), 0, 'recovered runs')
    assertMatches(run, { id: holder.id, status: 'pending', crashCount: 2 }, 'the run')
    assertApart(run.updatedAt, run.availableAt, crashBackoffMs(2, 0.5))
    assert((run.availableAt ?? '') > run.updatedAt, 'the run should be due later')
    assertEqual(await kit.claim(), [], 'runs claimed at once')
  },

  'a run at the crash limit whose job is not among those that fail here is due at once': async (kit) => {
    const [mine, other] = [await kit.startExpired({ jobName: 'mine' }), await kit.startExpired({ jobName: 'other' })]
    await kit.recover({ maxCrashes: 1, failsOnly: ['mine'] })
    assertMatches(await kit.run(mine.id), { status: 'failed', crashCount: 1 }, 'the run of the job that fails here')
    const due = { status: 'pending', crashCount: 1, availableAt: other.run.createdAt, error: null } as const
    assertMatches(await kit.run(other.id), due, 'the run of another job')
  },

  'a run that crashes too often in a row fails': async (kit) => {
    const holder = await kit.startExpired({ jobName: 'job', holdKeyWhileWaiting: true, concurrencyKey: 'key' })
    await kit.recover({ maxCrashes: 2 })
    assertMatches(await kit.run(holder.id), { status: 'pending', crashCount: 1 }, 'the run after one crash')
    await kit.hold({ leaseMs: -1000 })
    const run = itemAt(await kit.recover({ maxCrashes: 2 }), 0, 'recovered runs')
    const error = { error: 'crashed too often', errorDetail: { name: 'CrashLimit', code: 'CRASH_LIMIT' } }
    assertMatches(run, { status: 'failed', crashCount: 2, leaseEpoch: 4, concurrencySlot: null, ...error }, 'the run')
    assertInstant(run.finishedAt, 'finishedAt')
    assertEqual(await kit.claim(), [], 'runs claimed')
  },

  'progress between crashes starts the count anew': async (kit) => {
    await kit.enqueue()
    await crash(kit, 1)
    const holder = await kit.hold({ leaseMs: -1000 })
    await holder.commit({ leaseMs: -1000, hasProgressed: true, steps: [stepWrite()] })
    const run = itemAt(await kit.recover({ maxCrashes: 2 }), 0, 'recovered runs')
    assertMatches(run, { status: 'pending', crashCount: 1, availableAt: run.createdAt }, 'the run')
  },

  'a worker that left on purpose is no crash: its runs go back to their places, and nothing is counted': async (
    kit,
  ) => {
    await kit.enqueue({ jobName: 'job' })
    await crash(kit, 1)
    const holder = await kit.hold({ workerId: 'left' })
    await holder.commit({ steps: [stepWrite({ status: 'started', output: null })] })
    const wanted = { deadWorkerId: 'left', isCrash: false, maxCrashes: 2 }
    const run = itemAt(await kit.recover(wanted), 0, 'recovered runs')
    assertMatches(run, { status: 'pending', crashCount: 1, leaseEpoch: 4, availableAt: run.createdAt }, 'the run')
    assertMatches(run, { ...NO_LEASE, finishedAt: null, error: null }, 'the run')
    assertEqual(await holder.send(holder.next()), { kept: false }, 'a commit of the holder that left')
    assertEqual(await kit.claimedIds(), [holder.id], 'ids claimed')
  },

  'a run of a worker that left on purpose is cancelled if somebody asked for that': async (kit) => {
    const holder = await kit.start({}, { workerId: 'left' })
    await kit.order('cancel', holder.id)
    const run = itemAt(await kit.recover({ deadWorkerId: 'left', isCrash: false }), 0, 'recovered runs')
    assertMatches(run, { status: 'cancelled', crashCount: 0, ...NO_LEASE }, 'the run')
  },

  'a release is not a crash': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    await holder.leave('release')
    const again = await kit.hold()
    assertMatches(again.run, { crashCount: 0, leaseEpoch: 2 }, 'the run')
  },

  'the deadline goes on through a crash': async (kit) => {
    const holder = await kit.startExpired({ timeoutMs: 1000 })
    const run = itemAt(await kit.recover(), 0, 'recovered runs')
    const { deadlineAt, startedAt } = holder.run
    assertMatches(run, { deadlineAt, startedAt }, 'the run')
  },
})
