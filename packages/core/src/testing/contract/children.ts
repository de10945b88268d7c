import type { CommandAnswer } from '../../port'
import { assert, assertEqual, assertMatches, assertRejects, itemAt } from '../assert'
import { newId, newRun, outcomeOf, stepWrite } from './builders'
import { casesOf } from './contract-case'
import type { Holder } from './holder'
import type { Kit } from './kit'

async function suspendedParent(kit: Kit): Promise<Holder> {
  const parent = await kit.start({ jobName: 'parent' })
  await parent.leave('suspend')
  return parent
}

async function assertWoken(kit: Kit, parent: Holder, by: string): Promise<void> {
  const run = await kit.run(parent.id)
  assertMatches(run, { status: 'pending', wakes: 1, availableAt: run.createdAt }, `the parent after ${by}`)
  assertEqual(await kit.claimedIds({ jobs: ['parent'] }), [parent.id], `ids claimed after ${by}`)
}

/** A run of a key that nobody's parent made, and three suspended ones that wait for it. */
async function awaitedChild(kit: Kit) {
  const child = await kit.enqueue({ jobName: `shared-${newId()}`, idempotencyKey: 'k' })
  const parents: Holder[] = []
  for (let index = 0; index < 3; index++) {
    const parent = await kit.start()
    const asked = newRun({ jobName: child.jobName, idempotencyKey: 'k', parentRunId: parent.id })
    await parent.leave('suspend', {}, { steps: [stepWrite({ child: asked })] })
    parents.push(parent)
  }
  return { child, parents }
}

/** Two failures in one list, each with the run that it calls. */
async function checkCalled(kit: Kit, kind: 'fail' | 'timeOut'): Promise<void> {
  const holders = [await kit.start({ tenant: 'a' }), await kit.start({ tenant: 'a' })]
  const called = holders.map(({ id }) => newRun({ jobName: 'alert', parentRunId: id, tenant: 'a', labels: { of: id } }))
  const commits = holders.map((holder, index) => {
    return holder.next({ steps: [stepWrite()], outcome: outcomeOf(kind, { onFailure: called[index] ?? null }) })
  })
  for (const answer of await kit.storage.commit(commits))
    assertMatches(answer, { kept: true, children: [] }, 'an answer')
  for (const [index, { id }] of called.entries()) {
    const parentRunId = holders[index]?.id ?? ''
    const expected = { status: 'pending', parentRunId, tenant: 'a', labels: { of: parentRunId }, attempt: 1 } as const
    assertMatches(await kit.run(id), expected, 'the run that the failure called')
  }
  assertEqual((await kit.claimedIds({ jobs: ['alert'] })).sort(), called.map(({ id }) => id).sort(), 'ids claimed')
  const [again] = await kit.storage.commit(commits.slice(0, 1))
  assertMatches(again ?? { kept: false }, { kept: true }, 'the answer to the same commit')
  assertEqual((await kit.storage.getRuns({ jobNames: ['alert'] })).length, 2, 'runs called')
}

export const CHILD_CASES = casesOf('required', 'child runs', {
  'a run that fails calls another one in the same write': (kit) => checkCalled(kit, 'fail'),

  'a run that times out calls another one in the same write': (kit) => checkCalled(kit, 'timeOut'),

  'a run that is cancelled instead calls nobody, nor does one whose lease is lost': async (kit) => {
    const asked = await kit.start()
    await kit.order('cancel', asked.id)
    const outcome = outcomeOf('fail', { onFailure: newRun({ jobName: 'alert', parentRunId: asked.id }) })
    assertMatches(await asked.commit({ outcome }), { status: 'cancelled' }, 'the answer')
    const stale = await kit.startExpired()
    await kit.recover()
    const late = outcomeOf('fail', { onFailure: newRun({ jobName: 'alert', parentRunId: stale.id }) })
    assertEqual(await stale.send(stale.next({ outcome: late })), { kept: false }, 'the answer to a lost lease')
    assertEqual(await kit.storage.getRuns({ jobNames: ['alert'] }), [], 'runs called')
  },

  'a child is created with the step that asks for it': async (kit) => {
    const parent = await kit.start()
    const child = newRun({ jobName: 'child', parentRunId: parent.id, payload: '[1]', tenant: 'a' })
    const answer = await parent.commit({ steps: [stepWrite({ kind: 'trigger', output: null, child })] })
    assertEqual(answer.children, [child.id], 'children of the answer')
    const run = await kit.run(child.id)
    const expected = { status: 'pending', parentRunId: parent.id, payload: '[1]', tenant: 'a', attempt: 1 } as const
    assertMatches(run, expected, 'the child')
    assertMatches(
      itemAt(await kit.storage.getSteps(parent.id), 0, 'steps'),
      { output: JSON.stringify(child.id) },
      'the row',
    )
    assertEqual(await kit.claimedIds({ jobs: ['child'] }), [child.id], 'ids claimed')
  },

  'a child whose key is taken is the run that has it': async (kit) => {
    const known = await kit.enqueue({ jobName: 'child', idempotencyKey: 'k' })
    const parent = await kit.start()
    const child = newRun({ jobName: 'child', idempotencyKey: 'k', parentRunId: parent.id })
    const fresh = newRun({ jobName: 'child', parentRunId: parent.id })
    const steps = [stepWrite({ child, index: 0 }), stepWrite({ index: 1 }), stepWrite({ child: fresh, index: 2 })]
    const answer = await parent.commit({ steps })
    assertEqual(answer.children, [known.id, fresh.id], 'children of the answer')
    assertEqual(await kit.storage.getRun(child.id), null, 'the run not needed')
    const rows = await kit.storage.getSteps(parent.id)
    const outputs = [JSON.stringify(known.id), '"done"', JSON.stringify(fresh.id)]
    assertEqual(
      rows.map(({ output }) => output),
      outputs,
      'outputs of the rows',
    )
    assertMatches(
      await kit.run(known.id),
      { status: 'pending', parentRunId: null, alsoAwaitedBy: [parent.id], payload: known.payload },
      'the run that has the key',
    )
  },

  'a run whose key several ask for is awaited by each of them once': async (kit) => {
    const first = await kit.start()
    const child = newRun({ jobName: 'child', idempotencyKey: 'k', parentRunId: first.id })
    const keyed = (parent: Holder) => newRun({ jobName: 'child', idempotencyKey: 'k', parentRunId: parent.id })
    await first.commit({ steps: [stepWrite({ child })] })
    await first.commit({ steps: [stepWrite({ child: keyed(first) })] })
    assertMatches(await kit.run(child.id), { parentRunId: first.id, alsoAwaitedBy: [] }, 'the child of one')
    const others = [await kit.start(), await kit.start()]
    for (const other of others) {
      const answer = await other.commit({ steps: [stepWrite({ child: keyed(other) }), stepWrite()] })
      assertEqual(answer.children, [child.id], 'children of the answer')
      await other.commit({ steps: [stepWrite({ child: keyed(other) })] })
    }
    const { alsoAwaitedBy, version } = await kit.run(child.id)
    assertEqual([...alsoAwaitedBy].sort(), others.map(({ id }) => id).sort(), 'runs that also wait for it')
    const [listed] = await kit.storage.getRuns({ ids: [child.id] })
    assertMatches(listed ?? null, { alsoAwaitedBy, version }, 'the child in a list')
  },

  'the end of a child wakes all that wait for it, whatever the end': async (kit) => {
    for (const kind of ['complete', 'fail', 'timeOut', 'cancelled', 'retryLater'] as const) {
      const { child, parents } = await awaitedChild(kit)
      const held = await kit.hold({ jobs: [child.jobName] })
      await held.leave(kind)
      for (const parent of parents) {
        const { wakes, availableAt, createdAt } = await kit.run(parent.id)
        const expected = kind === 'retryLater' ? [0, null] : [1, createdAt]
        assertEqual([wakes, availableAt], expected, `the parent after ${kind}`)
      }
    }
  },

  'a child that ends otherwise wakes all that wait for it': async (kit) => {
    const cancelled = await awaitedChild(kit)
    await kit.order('cancel', cancelled.child.id)
    const failed = await awaitedChild(kit)
    await kit.order('park', failed.child.id)
    await kit.order('failParked', failed.child.id)
    const crashed = await awaitedChild(kit)
    await kit.hold({ jobs: [crashed.child.jobName], leaseMs: -1000 })
    await kit.recover({ maxCrashes: 1 })
    for (const { parents } of [cancelled, failed, crashed]) {
      for (const parent of parents) {
        const run = await kit.run(parent.id)
        assertMatches(run, { wakes: 1, availableAt: run.createdAt }, 'a parent')
      }
    }
  },

  'those that wait are woken with others of one list': async (kit) => {
    const { child, parents } = await awaitedChild(kit)
    const held = await kit.hold({ jobs: [child.jobName] })
    const [first] = parents
    const own = await kit.start({ parentRunId: first?.id ?? '' })
    await kit.storage.commit([held, own].map((one) => one.next({ outcome: outcomeOf('complete') })))
    const wakes = await Promise.all(parents.map(async ({ id }) => (await kit.run(id)).wakes))
    assertEqual(wakes, [2, 1, 1], 'wakes of the parents')
  },

  'who asks for a run that has ended is noted as well, and who has ended is not kept there': async (kit) => {
    const jobName = 'shared'
    const held = await kit.start({ jobName, idempotencyKey: 'k' })
    await held.leave('complete')
    const gone = await kit.start()
    const ask = (parent: Holder) => {
      const child = newRun({ jobName, idempotencyKey: 'k', parentRunId: parent.id })
      return parent.commit({ steps: [stepWrite({ child })] })
    }
    await ask(gone)
    assertMatches(await kit.run(held.id), { status: 'completed', alsoAwaitedBy: [gone.id] }, 'the run that has ended')
    await gone.leave('complete')
    const parent = await kit.start()
    await ask(parent)
    assertMatches(await kit.run(held.id), { alsoAwaitedBy: [parent.id] }, 'the run after that')
  },

  'a lost commit does not wait for the run that has the key': async (kit) => {
    const known = await kit.enqueue({ jobName: 'child', idempotencyKey: 'k' })
    const parent = await kit.start()
    const child = newRun({ jobName: 'child', idempotencyKey: 'k', parentRunId: parent.id })
    const lost = parent.next({ lease: { ...parent.lease, token: 'other' }, steps: [stepWrite({ child })] })
    assertEqual(await parent.send(lost), { kept: false }, 'answer')
    assertEqual(await kit.run(known.id), known, 'the run that has the key')
  },

  'a commit can create many children beside its steps': async (kit) => {
    const parent = await kit.start()
    const labels = { customer: 'a' }
    const children = Array.from({ length: 300 }, (_, n) =>
      newRun({ jobName: 'child', parentRunId: parent.id, payload: String(n), labels }),
    )
    const last = newRun({ jobName: 'child', parentRunId: parent.id, priority: -1 })
    const commit = parent.next({ children, steps: [stepWrite({ child: last }), stepWrite()] })
    const answer = await parent.send(commit)
    assertMatches(answer.kept ? answer : null, { children: [last.id] }, 'the answer')
    assertEqual(await parent.send(commit), answer, 'answer to the second')
    const ids = children.map(({ id }) => id)
    const found = await kit.storage.getRuns({ parentRunId: parent.id, labels })
    assertEqual(found.map(({ id }) => id).sort(), [...ids].sort(), 'ids of the children')
    assertEqual(new Set(found.map(({ createdAt }) => createdAt)).size, 1, 'instants at which they were created')
    const claimed = await kit.claim({ jobs: ['child'], limit: 400 })
    assertEqual(
      claimed.map(({ id, payload }) => [id, payload]),
      [...children, last].map(({ id, payload }) => [id, payload]),
      'runs claimed',
    )
  },

  'a lost commit creates none of many children': async (kit) => {
    const parent = await kit.start()
    const children = [newRun({ parentRunId: parent.id }), newRun({ parentRunId: parent.id })]
    const lost = parent.next({ lease: { ...parent.lease, token: 'other' }, children })
    assertEqual(await parent.send(lost), { kept: false }, 'answer')
    assertEqual(await kit.storage.getRuns({ parentRunId: parent.id }), [], 'children')
    const steps = [stepWrite({ name: 'a' }), stepWrite({ name: 'a' })]
    await assertRejects(parent.send(parent.next({ children, steps })), null, 'commit that cannot be written')
    assertEqual(await kit.storage.getRuns({ parentRunId: parent.id }), [], 'children')
  },

  'children of one commit are due in the order of its steps, whatever their keys': async (kit) => {
    const parent = await kit.start()
    const keys = [null, ...Array.from({ length: 20 }, (_, n) => `k${99 - n}`), null]
    const children = keys.map((idempotencyKey) => newRun({ jobName: 'child', idempotencyKey, parentRunId: parent.id }))
    const answer = await parent.commit({ steps: children.map((child, index) => stepWrite({ child, index })) })
    const ids = children.map(({ id }) => id)
    assertEqual(answer.children, ids, 'children of the answer')
    assertEqual(await kit.claimedIds({ jobs: ['child'] }), ids, 'ids claimed')
  },

  'a commit sent twice creates its children once and names them again': async (kit) => {
    const known = await kit.enqueue({ jobName: 'child', idempotencyKey: 'k' })
    const parent = await kit.start()
    const commit = parent.next({
      steps: [
        stepWrite({ child: newRun({ jobName: 'child', parentRunId: parent.id }) }),
        stepWrite({ child: newRun({ jobName: 'child', idempotencyKey: 'k' }) }),
      ],
    })
    const first = await parent.send(commit)
    assert(first.kept && first.children[1] === known.id, 'the second child should be the run that has the key')
    assertEqual(await parent.send(commit), first, 'answer to the second')
    assertEqual((await kit.storage.counts({ jobNames: ['child'] })).pending, 2, 'pending children')
  },

  'a lost commit creates no child': async (kit) => {
    const parent = await kit.start()
    const child = newRun({ jobName: 'child' })
    const lost = parent.next({ lease: { ...parent.lease, token: 'other' }, steps: [stepWrite({ child })] })
    assertEqual(await parent.send(lost), { kept: false }, 'answer')
    assertEqual(await kit.storage.getRun(child.id), null, 'the child')
  },

  'a commit that cannot be written creates no child': async (kit) => {
    const parent = await kit.start()
    const child = newRun({ jobName: 'child' })
    const steps = [stepWrite({ child }), stepWrite({ name: 'a' }), stepWrite({ name: 'a' })]
    await assertRejects(parent.send(parent.next({ steps })), null, 'commit')
    assertEqual(await kit.storage.getRun(child.id), null, 'the child')
  },

  'the end of a child wakes its suspended parent, whatever the end': async (kit) => {
    for (const kind of ['complete', 'fail', 'timeOut', 'cancelled'] as const) {
      const parent = await suspendedParent(kit)
      const child = await kit.start({ parentRunId: parent.id })
      await child.leave(kind)
      await assertWoken(kit, parent, kind)
      await kit.order('cancel', parent.id)
      await kit.recover({ deadWorkerId: 'worker-1' })
    }
  },

  'a child cancelled before it ran wakes its parent': async (kit) => {
    const parent = await suspendedParent(kit)
    const child = await kit.enqueue({ parentRunId: parent.id })
    await kit.order('cancel', child.id)
    await assertWoken(kit, parent, 'cancel')
  },

  'a child failed by hand wakes its parent': async (kit) => {
    const parent = await suspendedParent(kit)
    const child = await kit.enqueue({ parentRunId: parent.id })
    await kit.order('park', child.id)
    assertMatches(await kit.run(parent.id), { wakes: 0, availableAt: null }, 'the parent before')
    await kit.order('failParked', child.id)
    await assertWoken(kit, parent, 'failParked')
  },

  'a child lost at the crash limit wakes its parent': async (kit) => {
    const parent = await suspendedParent(kit)
    await kit.startExpired({ parentRunId: parent.id })
    await kit.recover({ maxCrashes: 1 })
    await assertWoken(kit, parent, 'the crash limit')
  },

  'a child cancelled by recovery wakes its parent': async (kit) => {
    const parent = await suspendedParent(kit)
    const child = await kit.startExpired({ parentRunId: parent.id })
    await kit.order('cancel', child.id)
    await kit.recover()
    await assertWoken(kit, parent, 'recovery')
  },

  'a child that only waits does not wake its parent': async (kit) => {
    const parent = await suspendedParent(kit)
    for (const kind of ['retryLater', 'suspend', 'release', 'park'] as const) {
      const child = await kit.start({ parentRunId: parent.id })
      await child.leave(kind)
    }
    assertMatches(await kit.run(parent.id), { wakes: 0, availableAt: null }, 'the parent')
  },

  'an end sent twice wakes once': async (kit) => {
    const parent = await suspendedParent(kit)
    const child = await kit.start({ parentRunId: parent.id })
    const commit = child.next({ outcome: outcomeOf('complete') })
    await child.send(commit)
    await child.send(commit)
    assertMatches(await kit.run(parent.id), { wakes: 1 }, 'the parent')
  },

  'many children that end in one list wake once each': async (kit) => {
    const parent = await suspendedParent(kit)
    const children: Holder[] = []
    for (let index = 0; index < 5; index++) children.push(await kit.start({ parentRunId: parent.id }))
    await kit.storage.commit(children.map((child) => child.next({ outcome: outcomeOf('complete') })))
    assertMatches(await kit.run(parent.id), { wakes: 5, availableAt: parent.run.createdAt }, 'the parent')
  },

  'a child and its parent in one list: no wake is lost, whoever comes first': async (kit) => {
    for (const isChildFirst of [true, false]) {
      const parent = await kit.start({ jobName: 'parent' })
      const child = await kit.start({ parentRunId: parent.id })
      const end = child.next({ outcome: outcomeOf('complete') })
      const commit = parent.next({ outcome: outcomeOf('suspend', { wakesSeen: 0 }) })
      await kit.storage.commit(isChildFirst ? [end, commit] : [commit, end])
      await assertWoken(kit, parent, `a list with the child ${isChildFirst ? 'first' : 'last'}`)
    }
    const parent = await kit.start()
    const child = await kit.start({ parentRunId: parent.id })
    const commit = parent.next({ steps: [stepWrite()] })
    await kit.storage.commit([commit, child.next({ outcome: outcomeOf('complete') })])
    assertMatches(await kit.run(parent.id), { status: 'running', wakes: 1, commitNo: 1 }, 'the parent that goes on')
  },

  'a child that ends while its parent runs is told to the holder': async (kit) => {
    const parent = await kit.start()
    const child = await kit.start({ parentRunId: parent.id })
    await child.leave('complete')
    const [renewed] = await kit.storage.renew([parent.lease], 60_000)
    assertEqual(renewed, { kept: true, wakes: 1, cancelRequested: false }, 'answer to the renewal')
    assertMatches(await parent.commit(), { wakes: 1 }, 'answer to the commit')
  },

  'suspend is due at once when it has not seen the last wake': async (kit) => {
    const parent = await kit.start({ jobName: 'parent' })
    const child = await kit.start({ parentRunId: parent.id })
    await child.leave('complete')
    const run = await parent.leave('suspend', { wakesSeen: 0 })
    const expected = { availableAt: run.createdAt, waitingFor: { kind: 'steps', steps: ['nap'] } } as const
    assertMatches(run, expected, 'the parent')
    const again = await kit.hold({ jobs: ['parent'] })
    const seen = await again.leave('suspend', { wakesSeen: 1 })
    assertMatches(seen, { availableAt: null, wakes: 1 }, 'the parent that has seen it')
  },

  'a parent that waits for something else is not made due': async (kit) => {
    for (const kind of ['retryLater', 'park'] as const) {
      const parent = await kit.start()
      const left = await parent.leave(kind)
      const child = await kit.start({ parentRunId: parent.id })
      await child.leave('complete')
      const { availableAt, waitingFor } = left
      assertMatches(await kit.run(parent.id), { status: 'pending', wakes: 1, availableAt, waitingFor }, `after ${kind}`)
    }
  },

  'an ended parent is not disturbed': async (kit) => {
    const parent = await kit.start({ jobName: 'parent' })
    const child = await kit.start({ parentRunId: parent.id })
    await parent.leave('complete')
    await child.leave('complete')
    assertMatches(await kit.run(parent.id), { status: 'completed', output: '{"ok":true}' }, 'the parent')
    const orphan = await kit.start({ parentRunId: parent.id })
    const removed: CommandAnswer = await kit.command('remove', parent.id)
    assertEqual(removed.applied, true, 'whether the parent was removed')
    assertMatches(await orphan.leave('complete'), { status: 'completed' }, 'a child of a removed parent')
  },
})
