import { assert, assertEqual, assertMatches, assertRejects, itemAt } from '../assert'
import { LEASE_MS, newLog, newRun, OUTCOME_KINDS, outcomeOf, runCommit, stepWrite } from './builders'
import { casesOf } from './contract-case'
import type { Holder } from './holder'
import { assertApart } from './instants'

export const COMMIT_CASES = casesOf('required', 'commit', {
  'the answer of a commit shows the run': async (kit) => {
    const holder = await kit.start()
    const answer = await holder.commit()
    const expected = { kept: true, status: 'running', seq: 0, wakes: 0, cancelRequested: false, children: [] }
    assertEqual(answer, expected, 'answer')
  },

  'a commit counts, extends the lease and moves the heartbeat': async (kit) => {
    const holder = await kit.start({}, { leaseMs: 1000 })
    await holder.commit({ leaseMs: 10 * LEASE_MS })
    const run = await kit.run(holder.id)
    assertMatches(run, { status: 'running', commitNo: 1, leaseEpoch: 1, claimToken: holder.lease.token }, 'the run')
    assertApart(run.heartbeatAt, run.leaseUntil, 10 * LEASE_MS)
    assert(run.version > holder.run.version, 'version should have grown')
    assertMatches(run, { updatedAt: run.heartbeatAt ?? '' }, 'the run')
  },

  'step index and progress are written over, or left alone': async (kit) => {
    const holder = await kit.start()
    await holder.commit({ currentStepIndex: 3, progress: { current: 2, total: 5, message: 'two of "five"' } })
    await holder.commit()
    const expected = { currentStepIndex: 3, progress: { current: 2, total: 5, message: 'two of "five"' } }
    assertMatches(await kit.run(holder.id), expected, 'the run after a commit without them')
    await holder.commit({ currentStepIndex: 4, progress: { current: 3 } })
    assertMatches(await kit.run(holder.id), { currentStepIndex: 4, progress: { current: 3 } }, 'the run in the end')
  },

  'an empty list is nothing to do': async (kit) => {
    assertEqual(await kit.storage.commit([]), [], 'answers')
  },

  'of many runs that only succeed each ends by its own state': async (kit) => {
    const ends = async (holders: readonly Holder[]) =>
      kit.storage.commit(holders.map((holder) => holder.next({ outcome: outcomeOf('complete', { output: null }) })))
    const parent = await kit.start({ jobName: 'parent' })
    const plain = [await kit.start(), await kit.start(), await kit.start()] as const
    const child = await kit.start({ parentRunId: parent.id })
    const [unwanted, stale] = [await kit.start(), await kit.start()]
    await kit.storage.command({ kind: 'cancel', runId: unwanted.id, events: { cancelled: [], requested: [] } })
    await stale.leave('release')
    const answers = await ends([plain[0], stale, unwanted, plain[1], child, plain[2]])
    const statuses = answers.map((answer) => (answer.kept ? answer.status : 'lost'))
    const expected = ['completed', 'lost', 'cancelled', 'completed', 'completed', 'completed']
    assertEqual(statuses, expected, 'answers')
    for (const holder of [...plain, child]) {
      const run = await kit.run(holder.id)
      assertMatches(run, { status: 'completed', output: null, ownerId: null, leaseUntil: null, commitNo: 1 }, 'the run')
      assertEqual(run.version, holder.run.version + 1, 'version')
      assertEqual(run.finishedAt, run.updatedAt, 'finishedAt')
    }
    assertMatches(await kit.run(parent.id), { wakes: 1 }, 'the parent')
    assertMatches(await kit.run(stale.id), { status: 'pending' }, 'the run that was given back')
  },

  'many runs are committed as one list, answered in order': async (kit) => {
    await kit.storage.enqueue(Array.from({ length: 40 }, () => newRun()))
    const runs = [...(await kit.claim({ claimToken: 'mine', limit: 40 }))].reverse()
    const commits = runs.map(({ id, leaseEpoch }, index) =>
      runCommit(
        { lease: { runId: id, epoch: leaseEpoch, token: 'mine', leaderEpoch: null }, commitNo: 1 },
        {
          steps: [stepWrite({ name: 's', output: String(index) })],
          outcome: index % 2 === 0 ? outcomeOf('complete') : null,
        },
      ),
    )
    const answers = await kit.storage.commit(commits)
    assertEqual(
      answers.map((answer) => answer.kept && answer.status),
      runs.map((_, index) => (index % 2 === 0 ? 'completed' : 'running')),
      'answers',
    )
    for (const [index, { id }] of runs.entries()) {
      assertMatches(
        itemAt(await kit.storage.getSteps(id), 0, 'steps'),
        { output: String(index) },
        `step of run ${index}`,
      )
    }
  },

  'a lost commit does not disturb the others of its list': async (kit) => {
    const holders = [await kit.start(), await kit.start(), await kit.start()]
    const [first, stale, last] = holders
    assert(first !== undefined && stale !== undefined && last !== undefined, 'three runs should be held')
    const before = await kit.snapshot(stale.id)
    const lost = stale.next({ lease: { ...stale.lease, epoch: 99 }, steps: [stepWrite()], outcome: outcomeOf('fail') })
    const answers = await kit.storage.commit([
      first.next({ steps: [stepWrite({ name: 'a' })] }),
      lost,
      last.next({ outcome: outcomeOf('complete') }),
    ])
    assertEqual(
      answers.map(({ kept }) => kept),
      [true, false, true],
      'kept',
    )
    assertEqual(await kit.snapshot(stale.id), before, 'the run of the lost commit')
    assertEqual((await kit.storage.getSteps(first.id)).length, 1, 'steps of the first run')
    assertMatches(await kit.run(last.id), { status: 'completed' }, 'the last run')
  },

  'a commit sent twice is applied once': async (kit) => {
    const holder = await kit.start()
    await kit.order('cancel', holder.id)
    const commit = holder.next({ steps: [stepWrite({ name: 'a' })], currentStepIndex: 1 })
    const first = await holder.send(commit)
    const before = await kit.snapshot(holder.id)
    const again = await holder.send(commit)
    assertMatches(again, { kept: true, status: 'running', wakes: 0, cancelRequested: true }, 'answer to the second')
    assertEqual(again, first, 'both answers')
    assertEqual(await kit.snapshot(holder.id), before, 'the run after the second')
  },

  'a commit that left running is known again when it comes twice': async (kit) => {
    for (const kind of OUTCOME_KINDS) {
      const holder = await kit.start()
      const commit = holder.next({ steps: [stepWrite({ name: 'a' })], outcome: outcomeOf(kind) })
      const first = await holder.send(commit)
      const before = await kit.snapshot(holder.id)
      assertEqual(await holder.send(commit), first, `answer to the second ${kind}`)
      assertEqual(await kit.snapshot(holder.id), before, `the run after the second ${kind}`)
    }
  },

  'a commit sent twice is lost when another lease came between': async (kit) => {
    const holder = await kit.start({ jobName: 'job' })
    const commit = holder.next({ outcome: outcomeOf('release') })
    await holder.send(commit)
    await kit.hold()
    const before = await kit.snapshot(holder.id)
    assertEqual(await holder.send(commit), { kept: false }, 'answer to the second')
    assertEqual(await kit.snapshot(holder.id), before, 'the run after the second')
  },

  'a commit sent twice within one list of others is applied once': async (kit) => {
    const [one, other] = [await kit.start(), await kit.start()]
    const commit = one.next({ steps: [stepWrite({ name: 'a' })] })
    await one.send(commit)
    const answers = await kit.storage.commit([commit, other.next()])
    assertEqual(
      answers.map(({ kept }) => kept),
      [true, true],
      'kept',
    )
    assertMatches(await kit.run(one.id), { commitNo: 1 }, 'the run committed twice')
  },

  'of two leases of one run in one list the current one counts': async (kit) => {
    const stale = await kit.startExpired({ jobName: 'job' })
    await kit.recover()
    const current = await kit.hold()
    const [late, next] = ['late', 'next'].map((name, index) =>
      [stale, current][index]?.next({ steps: [stepWrite({ name })], events: [], logs: [newLog()] }),
    )
    if (late === undefined || next === undefined) throw new Error('There should be two commits.')
    const answers = await kit.storage.commit([next, late, next])
    assertEqual(
      answers.map(({ kept }) => kept),
      [true, false, true],
      'kept',
    )
    assertMatches(await kit.run(current.id), { commitNo: 1 }, 'the run')
    const steps = await kit.storage.getSteps(current.id)
    assertEqual(
      steps.map(({ name }) => name),
      ['next'],
      'steps',
    )
  },

  'a row written twice in one commit is as it was written last': async (kit) => {
    const holder = await kit.start()
    const waiting = stepWrite({ name: 'wait', status: 'waiting', output: null, due: { inMs: LEASE_MS } })
    const started = stepWrite({ name: 'body', status: 'started', output: null, checkpoint: '1' })
    const steps = [
      ...[waiting, started],
      { ...waiting, status: 'completed' as const, output: '1', due: { inMs: 2 * LEASE_MS } },
      { ...started, status: 'completed' as const, output: '2', checkpoint: '2' },
    ]
    await holder.commit({ steps })
    const rows = await kit.storage.getSteps(holder.id)
    assertEqual(
      rows.map(({ name, status, output, checkpoint }) => [name, status, output, checkpoint]),
      [
        ['wait', 'completed', '1', null],
        ['body', 'completed', '2', '2'],
      ],
      'rows',
    )
    const { heartbeatAt } = await kit.run(holder.id)
    assertApart(heartbeatAt, itemAt(rows, 0, 'rows').dueAt, LEASE_MS)
  },

  'a list with a commit that cannot be written keeps each commit whole': async (kit) => {
    const [good, bad] = [await kit.start(), await kit.start()]
    await bad.commit({ steps: [stepWrite({ name: 'twice' })] })
    const before = await kit.snapshot(bad.id)
    const poison = bad.next({ steps: [stepWrite({ name: 'fresh' }), stepWrite({ name: 'twice' })] })
    const fine = good.next({ steps: [stepWrite({ name: 'a' })], outcome: outcomeOf('complete') })
    await kit.storage.commit([fine, poison]).catch(() => null)
    assertMatches(await good.send(fine), { kept: true, status: 'completed' }, 'the good commit sent alone')
    await assertRejects(bad.send(poison), null, 'the bad commit sent alone')
    assertEqual(await kit.snapshot(bad.id), before, 'the run of the bad commit')
    assertEqual((await kit.storage.getSteps(good.id)).length, 1, 'steps of the good one')
  },

  'a commit is possible after the lease ran out, until it is recovered': async (kit) => {
    const holder = await kit.startExpired()
    await holder.commit({ steps: [stepWrite()] })
    assertEqual(await kit.recover(), [], 'runs recovered after the commit')
  },

  'a commit with which the run got further ends the streak of crashes, no other does': async (kit) => {
    await kit.startExpired({ jobName: 'job' })
    await kit.recover()
    const holder = await kit.hold()
    assertMatches(holder.run, { crashCount: 1 }, 'the run after a crash')
    await holder.commit({ steps: [stepWrite({ name: 'a' })], progress: { current: 1 }, currentStepIndex: 1 })
    assertMatches(await kit.run(holder.id), { crashCount: 1 }, 'the run after a commit that is said not to be progress')
    await holder.commit({ hasProgressed: true })
    assertMatches(await kit.run(holder.id), { crashCount: 0 }, 'the run after one that is')
  },

  'a run that got further with the commit it leaves with has no crashes': async (kit) => {
    await kit.startExpired({ jobName: 'job' })
    await kit.recover()
    const holder = await kit.hold()
    assertMatches(await holder.leave('retryLater', {}, { hasProgressed: true }), { crashCount: 0 }, 'the run')
  },
})
