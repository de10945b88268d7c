import type { NewFork, RunRecord } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { newId, newRun, stepWrite, template, waitingStep } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

async function fork(kit: Kit, order: NewFork): Promise<RunRecord | null> {
  const { forks } = kit.storage
  assert(forks !== undefined, 'forks: the storage should have them')
  return forks.fork(order)
}

/** A run with two completed steps, one that failed and one that waits. */
async function origin(kit: Kit) {
  const holder = await kit.start({ tenant: 'acme', labels: { team: 'red' } })
  const steps = [
    stepWrite({ name: 'a', index: 0, output: '"one"', durationMs: 5 }),
    stepWrite({ name: 'b', index: 1, kind: 'sleep', output: null }),
    stepWrite({ name: 'c', index: 2, status: 'failed', output: null, error: 'broken' }),
    waitingStep({ name: 'd', index: 3 }),
  ]
  await holder.commit({ steps })
  await holder.leave('fail')
  return { run: await kit.run(holder.id), ids: steps.map(({ id }) => id) }
}

export const FORK_CASES = casesOf('forks', 'forks', {
  'a fork has copies of completed steps, and says whose': async (kit) => {
    const { run, ids } = await origin(kit)
    const created = newRun({ tenant: 'acme', payload: '2', events: [template('run:trigger')], labels: { team: 'red' } })
    const steps = ids.map((id) => ({ id, copyId: newId() }))
    const forked = await fork(kit, { run: created, originId: run.id, steps: steps.slice(0, 2) })
    assertMatches(
      forked ?? {},
      {
        ...{ id: created.id, status: 'pending', payload: '2', tenant: 'acme', labels: { team: 'red' } },
        ...{
          forkedFrom: run.id,
          parentRunId: null,
          attempt: 1,
          currentStepIndex: 2,
          lastEventSequence: 1,
          error: null,
        },
      },
      'the fork',
    )
    assertEqual(await kit.run(created.id), forked, 'the fork as it is read')
    const [before, after] = [await kit.storage.getSteps(run.id), await kit.storage.getSteps(created.id)]
    const own = before.slice(0, 2).map((step, index) => {
      return { ...step, id: steps[index]?.copyId, runId: created.id, leaseEpoch: 0 }
    })
    assertEqual(after, own as typeof after, 'its steps')
    assertEqual(await kit.run(run.id), run, 'the origin')
  },

  'nothing but completed steps of the origin is copied': async (kit) => {
    const { run, ids } = await origin(kit)
    const other = await kit.start()
    const foreign = stepWrite()
    await other.commit({ steps: [foreign] })
    const created = newRun()
    const steps = [...ids.slice(2), foreign.id, newId()].map((id) => ({ id, copyId: newId() }))
    await fork(kit, { run: created, originId: run.id, steps })
    assertEqual(await kit.storage.getSteps(created.id), [], 'its steps')
  },

  'a fork of a run that is not there is none': async (kit) => {
    const created = newRun()
    assertEqual(await fork(kit, { run: created, originId: newId(), steps: [] }), null, 'answer')
    assertEqual(await kit.storage.getRun(created.id), null, 'the run')
  },

  'a fork sent twice is one': async (kit) => {
    const { run, ids } = await origin(kit)
    const order = { run: newRun(), originId: run.id, steps: [{ id: ids[0] ?? '', copyId: newId() }] }
    const first = await fork(kit, order)
    const second = await fork(kit, order)
    assertEqual(second?.id, first?.id, 'id')
    assertEqual((await kit.storage.getSteps(order.run.id)).length, 1, 'number of steps')
    assertEqual((await kit.storage.getRuns({})).length, 2, 'number of runs')
  },

  'a fork is claimed, goes on after its steps, and outlives its origin': async (kit) => {
    const { run, ids } = await origin(kit)
    const created = newRun()
    await fork(kit, { run: created, originId: run.id, steps: [{ id: ids[0] ?? '', copyId: newId() }] })
    await kit.order('remove', run.id)
    const holder = await kit.hold()
    assertEqual(holder.id, created.id, 'id of the run claimed')
    await holder.commit({ steps: [stepWrite({ name: 'b', index: 1 })] })
    const names = (await kit.storage.getSteps(created.id)).map(({ name }) => name)
    assertEqual(names, ['a', 'b'], 'names of its steps')
    assertMatches(await holder.leave('complete'), { status: 'completed', forkedFrom: run.id }, 'the fork')
  },
})
