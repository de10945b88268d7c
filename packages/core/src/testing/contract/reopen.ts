import { assert, assertEqual, assertMatches } from '../assert'
import {
  FAR_MS,
  LEASE_MS,
  newLog,
  newRun,
  OUTCOME_KINDS,
  outcomeOf,
  stepWrite,
  template,
  waitingStep,
} from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

/** What was acknowledged before the kill is there after it, exactly. */
async function assertKept(kit: Kit, runId: string, after: string): Promise<void> {
  const before = await kit.snapshot(runId)
  await kit.reopen()
  assertEqual(await kit.snapshot(runId), before, `the run, reopened after ${after}`)
}

export const REOPEN_CASES = casesOf('required', 'reopen', {
  'enqueued runs are there after a kill': async (kit) => {
    const run = await kit.enqueue({ labels: { a: '1' }, idempotencyKey: 'k', events: [template('a')] })
    await assertKept(kit, run.id, 'enqueue')
    const [again] = await kit.storage.enqueue([newRun({ idempotencyKey: 'k' })])
    assertEqual(again?.created, false, 'whether the key is free')
    assertEqual((await kit.storage.getRuns({ labels: { a: '1' } })).length, 1, 'runs with the label')
    assertEqual(await kit.claimedIds(), [run.id], 'ids claimed')
  },

  'a storage that names its database names it so again': async (kit) => {
    const { location } = kit.storage
    await kit.reopen()
    assertEqual(kit.storage.location, location, 'location')
  },

  'a run whose answer was lost can be sent again': async (kit) => {
    const run = newRun({ idempotencyKey: 'k' })
    await kit.storage.enqueue([run])
    await kit.reopen()
    assertMatches((await kit.storage.enqueue([run]))[0] ?? null, { created: true }, 'answer')
    assertEqual((await kit.storage.counts({})).pending, 1, 'pending runs')
  },

  'a claim is there after a kill, and its repetition finds it': async (kit) => {
    const holder = await kit.start({ concurrencyKey: 'key' }, { claimToken: 'mine' })
    await assertKept(kit, holder.id, 'claim')
    assertEqual(await kit.claim({ claimToken: 'mine', repeat: true }), [holder.run], 'runs of the repeated claim')
    await kit.enqueue({ concurrencyKey: 'key' })
    assertEqual(await kit.claim({ limit: 9 }), [], 'runs claimed beside it')
  },

  'a commit is there after a kill, and its repetition is known': async (kit) => {
    const holder = await kit.start()
    const commit = holder.next({
      steps: [stepWrite({ checkpoint: '1' }), waitingStep({ due: { inMs: FAR_MS } })],
      logs: [newLog()],
      events: [template('a'), template('b')],
      progress: { current: 1, total: 2 },
      currentStepIndex: 1,
    })
    const answer = await holder.send(commit)
    await assertKept(kit, holder.id, 'commit')
    assertEqual(await holder.send(commit), answer, 'answer to the commit sent again')
    await assertKept(kit, holder.id, 'a commit sent again')
  },

  'the holder goes on after a kill of the storage': async (kit) => {
    const holder = await kit.start()
    await holder.commit({ steps: [stepWrite()] })
    await kit.reopen()
    await holder.commit({ steps: [stepWrite()] })
    await kit.reopen()
    assertMatches(await holder.leave('complete'), { status: 'completed', commitNo: 3 }, 'the run')
  },

  'every way out of running is there after a kill': async (kit) => {
    for (const kind of OUTCOME_KINDS) {
      const holder = await kit.start()
      const commit = holder.next({ steps: [stepWrite()], outcome: outcomeOf(kind) })
      const answer = await holder.send(commit)
      await assertKept(kit, holder.id, kind)
      assertEqual(await holder.send(commit), answer, `answer to ${kind} sent again`)
    }
  },

  'a list of commits is there after a kill': async (kit) => {
    const holders = [await kit.start(), await kit.start(), await kit.start()]
    await kit.storage.commit(
      holders.map((holder) => holder.next({ steps: [stepWrite()], outcome: outcomeOf('complete') })),
    )
    await kit.reopen()
    for (const { id } of holders) {
      assertMatches(await kit.run(id), { status: 'completed' }, 'a run')
      assertEqual((await kit.storage.getSteps(id)).length, 1, 'number of steps')
    }
  },

  'children and the wake of their parent are there after a kill': async (kit) => {
    const parent = await kit.start()
    const child = newRun({ jobName: 'child', parentRunId: parent.id })
    await parent.commit({ steps: [stepWrite({ child })] })
    await parent.leave('suspend')
    await kit.reopen()
    const holder = await kit.hold({ jobs: ['child'] })
    await holder.leave('complete')
    await assertKept(kit, parent.id, 'the end of a child')
    assertMatches(await kit.run(parent.id), { wakes: 1, availableAt: parent.run.createdAt }, 'the parent')
  },

  'a renewal is there after a kill': async (kit) => {
    const holder = await kit.startExpired()
    await kit.storage.renew([holder.lease], LEASE_MS)
    await assertKept(kit, holder.id, 'renewal')
    assertEqual(await kit.recover(), [], 'recovered runs')
  },

  'a recovery is there after a kill, and the old holder stays locked out': async (kit) => {
    const holder = await kit.startExpired({ jobName: 'job' })
    await kit.recover()
    await assertKept(kit, holder.id, 'recovery')
    assertEqual(await holder.send(holder.next()), { kept: false }, 'answer to the old holder')
    assertMatches((await kit.hold()).run, { leaseEpoch: 3, crashCount: 1 }, 'the next claim')
  },

  'the epoch goes on after a kill': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    await holder.leave('release')
    await kit.reopen()
    assertMatches((await kit.hold()).run, { leaseEpoch: holder.lease.epoch + 1 }, 'the next claim')
  },

  'commands are there after a kill': async (kit) => {
    const holder = await kit.start()
    await kit.order('cancel', holder.id)
    await assertKept(kit, holder.id, 'the request to cancel')
    assertMatches(await holder.leave('complete'), { status: 'cancelled' }, 'the run in the end')
    await kit.order('retry', holder.id)
    await assertKept(kit, holder.id, 'retry')
    await kit.order('park', holder.id)
    await assertKept(kit, holder.id, 'park')
    await kit.order('unpark', holder.id)
    await assertKept(kit, holder.id, 'unpark')
    await kit.order('park', holder.id)
    await kit.order('failParked', holder.id)
    await assertKept(kit, holder.id, 'failParked')
    await kit.order('remove', holder.id)
    await assertKept(kit, holder.id, 'remove')
  },

  'a purge is there after a kill': async (kit) => {
    const [ended, waiting] = [await kit.start(), await kit.enqueue()]
    await ended.leave('complete')
    await kit.storage.purge({ statuses: ['completed'], limit: 9 })
    await kit.reopen()
    assertEqual(await kit.storage.getRun(ended.id), null, 'the purged run')
    assertEqual(await kit.run(waiting.id), waiting, 'the other run')
  },

  'of a call in flight all is there after a kill, or nothing': async (kit) => {
    const holder = await kit.start()
    const [one, two] = [newRun({ jobName: 'x' }), newRun({ jobName: 'x' })]
    const calls = [
      kit.storage.enqueue([one, two]),
      holder.send(holder.next({ steps: [stepWrite({ name: 'a' }), stepWrite({ name: 'b' })] })),
    ]
    const settled = Promise.allSettled(calls)
    await kit.reopen()
    await settled
    const { pending } = await kit.storage.counts({ jobNames: ['x'] })
    assert(pending === 0 || pending === 2, `enqueue of two runs: ${pending} are there`)
    const steps = await kit.storage.getSteps(holder.id)
    const { commitNo } = await kit.run(holder.id)
    assertEqual(steps.length, 2 * commitNo, 'number of steps')
  },
})

export const SIGNAL_REOPEN_CASES = casesOf('signals', 'reopen', {
  'signals are there after a kill, used up or not': async (kit) => {
    const holder = await kit.start()
    const signal = { runId: holder.id, name: 'a', payload: '1', dedupeKey: 'k', events: [] }
    await kit.signals.send(signal)
    await assertKept(kit, holder.id, 'a signal')
    assertEqual(await kit.signals.send(signal), { kept: false, reason: 'duplicate' }, 'answer to the same signal')
    await holder.commit({ consumedSignals: [1] })
    await assertKept(kit, holder.id, 'the use of a signal')
    assertEqual(await kit.signals.getUnread(holder.id), [], 'signals left')
    assertEqual(await kit.signals.send(signal), { kept: false, reason: 'duplicate' }, 'answer to the same signal later')
  },
})

export const TRANSACTION_REOPEN_CASES = casesOf('transaction', 'reopen', {
  'a transaction is there after a kill': async (kit) => {
    const holder = await kit.start()
    const [row, own] = [newRun(), newRun()]
    await kit.transaction.commitWith(async (trx) => {
      await kit.transaction.enqueue(trx, [row])
      return { commit: holder.next({ steps: [stepWrite({ kind: 'transaction' })] }), value: null }
    }, 5000)
    await kit.transaction.run((trx) => kit.transaction.enqueue(trx, [own]))
    await assertKept(kit, holder.id, 'commitWith')
    for (const { id } of [row, own]) assertMatches(await kit.run(id), { status: 'pending' }, 'what was written inside')
  },
})
