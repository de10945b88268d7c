import type { Lease } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { LEASE_MS, OUTCOME_KINDS } from './builders'
import { casesOf } from './contract-case'
import { assertApart } from './instants'
import type { Kit } from './kit'

const LOST = [{ kept: false }]

async function mustLose(kit: Kit, lease: Lease, why: string): Promise<void> {
  const before = await kit.snapshot(lease.runId)
  assertEqual(await kit.storage.renew([lease], LEASE_MS), LOST, `answer to a renewal ${why}`)
  assertEqual(await kit.snapshot(lease.runId), before, `the run after a renewal ${why}`)
}

export const RENEW_CASES = casesOf('required', 'renew', {
  'a renewal extends the lease from now': async (kit) => {
    const holder = await kit.start({}, { leaseMs: 1000 })
    const answers = await kit.storage.renew([holder.lease], 5 * LEASE_MS)
    assertEqual(answers, [{ kept: true, wakes: 0, cancelRequested: false }], 'answers')
    const run = await kit.run(holder.id)
    assertApart(run.heartbeatAt, run.leaseUntil, 5 * LEASE_MS)
    assertMatches(run, { status: 'running', commitNo: 0, leaseEpoch: 1, ownerId: 'worker-1' }, 'the run')
    assert(run.version > holder.run.version, 'version should have grown')
  },

  'a renewal is no commit': async (kit) => {
    const holder = await kit.start()
    await holder.commit()
    await kit.storage.renew([holder.lease], LEASE_MS)
    await holder.commit()
    assertMatches(await kit.run(holder.id), { commitNo: 2 }, 'the run')
  },

  'a lease that ran out but was not recovered is renewed': async (kit) => {
    const holder = await kit.startExpired()
    const answers = await kit.storage.renew([holder.lease], LEASE_MS)
    assertMatches(answers[0] ?? null, { kept: true }, 'the answer')
    assertEqual(await kit.recover(), [], 'runs recovered afterwards')
  },

  'a lease can be renewed into the past': async (kit) => {
    const holder = await kit.start()
    await kit.storage.renew([holder.lease], -1000)
    assertEqual((await kit.recover()).length, 1, 'runs recovered afterwards')
  },

  'the holder learns that it shall cancel': async (kit) => {
    const holder = await kit.start()
    await kit.order('cancel', holder.id)
    const answers = await kit.storage.renew([holder.lease], LEASE_MS)
    assertEqual(answers, [{ kept: true, wakes: 0, cancelRequested: true }], 'answers')
  },

  'an old and a new lease of one run are told apart': async (kit) => {
    const old = await kit.startExpired()
    await kit.recover()
    const { lease } = await kit.hold({ jobs: [old.run.jobName] })
    const answers = await kit.storage.renew([old.lease, lease], LEASE_MS)
    assertEqual(answers, [{ kept: false }, { kept: true, wakes: 0, cancelRequested: false }], 'answers')
  },

  'many leases are answered in order, lost ones among them': async (kit) => {
    const [one, two, three] = [await kit.start(), await kit.start(), await kit.start()]
    await two.leave('complete')
    const unknown = { ...three.lease, runId: '01JNONE0000000000000000000' }
    const answers = await kit.storage.renew([three.lease, two.lease, unknown, one.lease], LEASE_MS)
    assertEqual(
      answers.map(({ kept }) => kept),
      [true, false, false, true],
      'kept',
    )
    assertEqual(await kit.storage.renew([], LEASE_MS), [], 'answers to no lease')
  },

  'a renewal under another lease leaves nothing': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    const { lease } = holder
    await mustLose(kit, { ...lease, epoch: lease.epoch + 1 }, 'with a later epoch')
    await mustLose(kit, { ...lease, epoch: lease.epoch - 1 }, 'with an earlier epoch')
    await mustLose(kit, { ...lease, token: 'other' }, 'with the token of another claim')
    await mustLose(kit, { ...lease, leaderEpoch: 7 }, 'with a leader epoch')
    await kit.recover({ deadWorkerId: 'worker-1' })
    await mustLose(kit, lease, 'after recovery')
    await kit.hold()
    await mustLose(kit, lease, 'after the next claim')
  },

  'a renewal after the run was left leaves nothing': async (kit) => {
    for (const kind of OUTCOME_KINDS) {
      const holder = await kit.start()
      await holder.leave(kind)
      await mustLose(kit, holder.lease, `after ${kind}`)
    }
  },
})
