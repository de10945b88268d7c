import type { CommandAnswer } from '../../storage'
import { assert, assertEqual, assertMatches, assertRejects, itemAt } from '../assert'
import { newRun, outcomeOf, stepWrite } from './builders'
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

export const CHILD_CASES = casesOf('required', 'child runs', {
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
    assertEqual(await kit.run(known.id), known, 'the run that has the key')
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
