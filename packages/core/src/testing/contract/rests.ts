import type { RunRecord } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS, outcomeOf, waitingStep } from './builders'
import { casesOf } from './contract-case'
import type { Holder } from './holder'
import { assertApart } from './instants'
import type { Kit } from './kit'

/** A run that waits for so many children, of a job of its own. */
async function restingParent(kit: Kit, children: number, over: { restMs?: number } = {}) {
  const parent = await kit.start({ jobName: 'parent' })
  const run = await parent.leave('suspend', { wakesWanted: children, restMs: FAR_MS, ...over })
  return { parent, run }
}

async function endChildOf(kit: Kit, parent: Holder): Promise<RunRecord> {
  const child = await kit.start({ parentRunId: parent.id })
  await child.leave('complete')
  return kit.run(parent.id)
}

export const REST_CASES = [
  ...casesOf('required', 'rests', {
    'who rests is not due before a child has ended': async (kit) => {
      const { run } = await restingParent(kit, 3)
      assertMatches(run, { availableAt: null, wakes: 0, wakesWanted: 3 }, 'the parent')
      assertApart(run.updatedAt, run.restUntil, FAR_MS)
    },

    'the end of a child makes it due when the rest is over': async (kit) => {
      const { parent, run } = await restingParent(kit, 3)
      assertMatches(await endChildOf(kit, parent), { wakes: 1, availableAt: run.restUntil }, 'after the first')
      assertMatches(await endChildOf(kit, parent), { wakes: 2, availableAt: run.restUntil }, 'after the second')
      assertEqual(await kit.claimedIds({ jobs: ['parent'] }), [], 'ids claimed')
    },

    'the end of the last child makes it due at once': async (kit) => {
      const { parent, run } = await restingParent(kit, 3)
      for (let ended = 0; ended < 3; ended++) await endChildOf(kit, parent)
      assertMatches(await kit.run(parent.id), { wakes: 3, availableAt: run.createdAt }, 'the parent')
      assertEqual(await kit.claimedIds({ jobs: ['parent'] }), [parent.id], 'ids claimed')
    },

    'children that end in one list count each': async (kit) => {
      for (const children of [4, 5]) {
        const { parent, run } = await restingParent(kit, 5)
        const held: Holder[] = []
        for (let index = 0; index < children; index++) held.push(await kit.start({ parentRunId: parent.id }))
        await kit.storage.commit(held.map((child) => child.next({ outcome: outcomeOf('complete') })))
        const availableAt = children === 5 ? run.createdAt : run.restUntil
        assertMatches(await kit.run(parent.id), { wakes: children, availableAt }, `after ${children} of 5`)
        await kit.order('cancel', parent.id)
      }
    },

    'a rest that is over holds nothing back': async (kit) => {
      const { parent, run } = await restingParent(kit, 3, { restMs: -1000 })
      assertMatches(await endChildOf(kit, parent), { wakes: 1, availableAt: run.createdAt }, 'the parent')
    },

    'without a rest a child makes it due at once': async (kit) => {
      const { parent, run } = await restingParent(kit, 3, { restMs: 0 })
      assertEqual(run.restUntil, null, 'restUntil')
      assertMatches(await endChildOf(kit, parent), { wakes: 1, availableAt: run.createdAt }, 'the parent')
    },

    'a wait that ends before the rest is not put off': async (kit) => {
      const parent = await kit.start({ jobName: 'parent' })
      const steps = [waitingStep({ name: 'nap', due: { inMs: -1000 } })]
      const run = await parent.leave('suspend', { wakesWanted: 3, restMs: FAR_MS }, { steps })
      assertMatches(await endChildOf(kit, parent), { wakes: 1, availableAt: run.availableAt }, 'the parent')
      assertEqual(await kit.claimedIds({ jobs: ['parent'] }), [parent.id], 'ids claimed')
    },

    'a wait that ends after the rest is waited for no longer than that': async (kit) => {
      const parent = await kit.start({ jobName: 'parent' })
      const steps = [waitingStep({ name: 'nap', due: { at: '2099-01-01T00:00:00.000Z' } })]
      const run = await parent.leave('suspend', { wakesWanted: 3, restMs: FAR_MS }, { steps })
      assertMatches(run, { availableAt: '2099-01-01T00:00:00.000Z' }, 'the parent before')
      assertMatches(await endChildOf(kit, parent), { availableAt: run.restUntil }, 'the parent')
    },

    'an end that the suspension has not seen counts as one after it': async (kit) => {
      for (const [wakesWanted, isDue] of [
        [2, false],
        [1, true],
      ] as const) {
        const parent = await kit.start({ jobName: 'parent' })
        await endChildOf(kit, parent)
        const run = await parent.leave('suspend', { wakesSeen: 0, wakesWanted, restMs: FAR_MS })
        assertMatches(run, { wakes: 1, availableAt: isDue ? run.createdAt : run.restUntil }, `wanted ${wakesWanted}`)
        await kit.order('cancel', parent.id)
      }
    },

    'a child that ends in the list of the suspension counts, whoever comes first': async (kit) => {
      for (const isChildFirst of [true, false]) {
        for (const wakesWanted of [1, 2]) {
          const parent = await kit.start({ jobName: 'parent' })
          const child = await kit.start({ parentRunId: parent.id })
          const end = child.next({ outcome: outcomeOf('complete') })
          const suspend = parent.next({ outcome: outcomeOf('suspend', { wakesWanted, restMs: FAR_MS }) })
          await kit.storage.commit(isChildFirst ? [end, suspend] : [suspend, end])
          const run = await kit.run(parent.id)
          assert(run.restUntil !== null, 'restUntil should be set')
          const availableAt = wakesWanted === 1 ? run.createdAt : run.restUntil
          assertMatches(
            run,
            { wakes: 1, availableAt },
            `wanted ${wakesWanted}, child ${isChildFirst ? 'first' : 'last'}`,
          )
          await kit.order('cancel', parent.id)
        }
      }
    },

    'a cancelled child and one at the crash limit count': async (kit) => {
      const { parent, run } = await restingParent(kit, 3)
      const child = await kit.enqueue({ parentRunId: parent.id })
      await kit.order('cancel', child.id)
      assertMatches(await kit.run(parent.id), { wakes: 1, availableAt: run.restUntil }, 'after the cancel')
      await kit.startExpired({ parentRunId: parent.id })
      await kit.recover({ maxCrashes: 1 })
      assertMatches(await kit.run(parent.id), { wakes: 2, availableAt: run.restUntil }, 'after the crash limit')
      const parked = await kit.enqueue({ parentRunId: parent.id })
      await kit.order('park', parked.id)
      await kit.order('failParked', parked.id)
      assertMatches(await kit.run(parent.id), { wakes: 3, availableAt: run.createdAt }, 'after the last')
    },

    'the next suspension has a rest of its own': async (kit) => {
      const { parent } = await restingParent(kit, 1)
      await endChildOf(kit, parent)
      const again = await kit.hold({ jobs: ['parent'] })
      const run = await again.leave('suspend', { wakesSeen: 1, wakesWanted: 3, restMs: 2 * FAR_MS })
      assertMatches(run, { availableAt: null, wakesWanted: 3 }, 'the parent')
      assertApart(run.updatedAt, run.restUntil, 2 * FAR_MS)
      assertMatches(await endChildOf(kit, again), { availableAt: run.restUntil }, 'after a child')
    },
  }),
  ...casesOf('signals', 'rests', {
    'a signal wakes who rests at once': async (kit) => {
      const { parent, run } = await restingParent(kit, 3)
      await kit.signals.send({ runId: parent.id, name: 'go', payload: null, dedupeKey: null, events: [] })
      assertMatches(await kit.run(parent.id), { wakes: 1, availableAt: run.createdAt }, 'the parent')
      assertMatches(await endChildOf(kit, parent), { wakes: 2, availableAt: run.createdAt }, 'after a child')
    },

    'a signal that the suspension has not seen makes it due at once': async (kit) => {
      const parent = await kit.start({ jobName: 'parent' })
      await kit.signals.send({ runId: parent.id, name: 'go', payload: null, dedupeKey: null, events: [] })
      await endChildOf(kit, parent)
      const run = await parent.leave('suspend', { wakesSeen: 0, wakesWanted: 9, restMs: FAR_MS })
      assertMatches(run, { wakes: 2, availableAt: run.createdAt }, 'the parent')
      const again = await kit.hold({ jobs: ['parent'] })
      const seen = await again.leave('suspend', { wakesSeen: 1, wakesWanted: 9, restMs: FAR_MS })
      assertMatches(seen, { availableAt: seen.restUntil }, 'the parent that has seen the signal, but not the child')
    },
  }),
]
