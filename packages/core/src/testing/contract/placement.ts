import {
  type Assignment,
  type AssignedParams,
  type Lead,
  LEADER,
  type NewRun,
  type OrphanParams,
  type RunRecord,
} from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { FAR_MS, LEASE_MS, newId, outcomeOf, runCommit, template } from './builders'
import { casesOf } from './contract-case'
import { Holder } from './holder'
import type { Kit } from './kit'
import { newBeat, waiting } from './workers'

async function leadOf(kit: Kit, workerId = 'leader-1', ttlMs = FAR_MS): Promise<Lead> {
  const lead = await kit.cluster.lead({ name: LEADER, workerId, ttlMs })
  assert(lead !== null, 'lead: should be free')
  return lead
}

function assignmentOf({ id: runId, version }: RunRecord, over: Partial<Assignment> = {}): Assignment {
  return { runId, version, workerId: 'w-1', events: [], ...over }
}

interface Assigned {
  readonly lead: Lead
  readonly run: RunRecord
}

/** A run of its own that was assigned to `w-1`. */
async function assigned(kit: Kit, over: Partial<NewRun> = {}, lead?: Lead): Promise<Assigned> {
  const leading = lead ?? (await leadOf(kit))
  const run = await kit.enqueue(over)
  assertEqual(await kit.placement.assign(leading, [assignmentOf(run)]), [true], 'assign')
  return { lead: leading, run: await kit.run(run.id) }
}

function paramsOf({ id: runId, version }: RunRecord, over: Partial<AssignedParams> = {}): AssignedParams {
  return { workerId: 'w-1', runs: [{ runId, version }], events: [], ...over }
}

async function start(kit: Kit, run: RunRecord, over: Partial<AssignedParams> = {}): Promise<readonly RunRecord[]> {
  return kit.placement.start({ ...paramsOf(run, over), claimToken: newId(), leaseMs: LEASE_MS })
}

function orphan(kit: Kit, over: Partial<OrphanParams>): Promise<readonly RunRecord[]> {
  return kit.placement.orphan({
    lead: null,
    reassignAfterMs: FAR_MS,
    livingAfterMs: FAR_MS,
    limit: 100,
    events: [],
    ...over,
  })
}

/** So that every assignment is too old. */
const AT_ONCE_MS = -1000

export const ASSIGN_CASES = casesOf('cluster', 'assign', {
  'a run waits for its worker, and nobody claims it': async (kit) => {
    const { lead, run } = await assigned(kit)
    const expected = { status: 'assigned', assignedWorkerId: 'w-1', assignments: 1, leaderEpoch: lead.epoch } as const
    assertMatches(run, { ...expected, ownerId: null, leaseUntil: null, leaseEpoch: 0 }, 'the run')
    assertEqual(await kit.claimedIds(), [], 'claimed runs')
    assertEqual((await kit.placement.assigned('w-2', 10)).runs, [], 'of another worker')
    await kit.reopen()
    const { runs, isLed } = await kit.placement.assigned('w-1', 10)
    assertEqual(runs, [{ runId: run.id, version: run.version, jobName: 'job', isSuspect: false }], 'of the worker')
    assertEqual(isLed, true, 'there is a leader')
    assertMatches(await kit.storage.counts({}), { assigned: 1, pending: 0 }, 'counts')
  },

  'of several runs each has its answer, and what is assigned comes by priority and age': async (kit) => {
    const lead = await leadOf(kit)
    const runs = [await kit.enqueue(), await kit.enqueue({ priority: 1 }), await kit.enqueue()]
    const [first, second, third] = runs.map((run) => assignmentOf(run)) as [Assignment, Assignment, Assignment]
    const gone = { ...first, runId: newId() }
    const answers = await kit.placement.assign(lead, [first, gone, second, { ...third, version: 7 }])
    assertEqual(answers, [true, false, true, false], 'answers')
    assertEqual(await kit.placement.assign(lead, []), [], 'of nothing')
    const ids = async (limit: number) => (await kit.placement.assigned('w-1', limit)).runs.map(({ runId }) => runId)
    assertEqual(await ids(10), [second.runId, first.runId], 'in order')
    assertEqual(await ids(1), [second.runId], 'so many at most')
  },

  'a run that has changed since it was read is left alone': async (kit) => {
    const lead = await leadOf(kit)
    const run = await kit.enqueue()
    await kit.order('park', run.id)
    assertEqual(await kit.placement.assign(lead, [assignmentOf(run)]), [false], 'assign')
    assertMatches(await kit.run(run.id), { status: 'pending', assignments: 0 }, 'the run')
  },

  'a run that runs is left alone': async (kit) => {
    const lead = await leadOf(kit)
    const holder = await kit.start()
    const now = await kit.run(holder.id)
    assertEqual(await kit.placement.assign(lead, [assignmentOf(now)]), [false], 'assign')
    await holder.leave('complete')
    assertEqual(await kit.placement.assign(lead, [assignmentOf(await kit.run(holder.id))]), [false], 'of an ended run')
  },

  'an old leader assigns nothing': async (kit) => {
    const old = await leadOf(kit, 'leader-1', -1000)
    const lead = await leadOf(kit, 'leader-2')
    const run = await kit.enqueue()
    assertEqual(await kit.placement.assign(old, [assignmentOf(run)]), [false], 'by the old one')
    assertEqual(await kit.placement.assign({ ...lead, epoch: old.epoch }, [assignmentOf(run)]), [false], 'its epoch')
    assertEqual(await kit.placement.assign({ ...lead, workerId: 'x' }, [assignmentOf(run)]), [false], 'its name')
    assertMatches(await kit.run(run.id), { status: 'pending', version: run.version }, 'the run')
    assertEqual(await kit.placement.assign(lead, [assignmentOf(run)]), [true], 'by the new one')
  },

  'the slot of the key is taken': async (kit) => {
    const lead = await leadOf(kit)
    const key = { concurrencyKey: 'k', concurrencyLimit: 2 }
    const runs = [await kit.enqueue(key), await kit.enqueue(key), await kit.enqueue(key)]
    const all = runs.map((run) => assignmentOf(run))
    assertEqual(await kit.placement.assign(lead, all), [true, true, false], 'assign')
    const slots = [await kit.run(all[0]?.runId ?? ''), await kit.run(all[1]?.runId ?? '')]
    assertEqual(slots.map(({ concurrencySlot }) => concurrencySlot).sort(), [0, 1], 'slots')
    assertEqual([await kit.claimedIds(), await waiting(kit)], [[], []], 'nobody else gets one')
    const [first] = slots
    await start(kit, first as RunRecord)
    assertMatches(
      await kit.run(first?.id ?? ''),
      { status: 'running', concurrencySlot: first?.concurrencySlot ?? null },
      'kept',
    )
  },

  'events come with it': async (kit) => {
    const lead = await leadOf(kit)
    const run = await kit.enqueue({ events: [template('run:trigger')] })
    const other = await kit.enqueue()
    const told = assignmentOf(run, { events: [template('run:assign', '{"to":"w-1"}')] })
    await kit.placement.assign(lead, [told, assignmentOf(other)])
    const [started] = await start(kit, await kit.run(run.id), { events: [template('run:start')] })
    assertEqual(started?.lastEventSequence, 3, 'number of events')
    const events = (await kit.storage.events?.getEvents(run.id, {})) ?? []
    const types = events.map(({ type, seq }) => [seq, type])
    assertEqual(
      types,
      [
        [1, 'run:trigger'],
        [2, 'run:assign'],
        [3, 'run:start'],
      ],
      'events',
    ) // prettier-ignore
    assertMatches(await kit.run(other.id), { lastEventSequence: 0 }, 'the other')
  },

  'one that is assigned may be cancelled': async (kit) => {
    const { run } = await assigned(kit, { concurrencyKey: 'k' })
    assertMatches(await kit.order('cancel', run.id), { status: 'cancelled', concurrencySlot: null }, 'the run')
    assertEqual(await start(kit, run), [], 'start')
    assertEqual((await kit.placement.assigned('w-1', 10)).runs, [], 'what is assigned')
  },
})

export const PLACED_START_CASES = casesOf('cluster', 'start', {
  'its worker takes a lease as by a claim': async (kit) => {
    const { lead, run } = await assigned(kit, { timeoutMs: FAR_MS })
    const claimToken = newId()
    const params = { ...paramsOf(run), claimToken, leaseMs: LEASE_MS }
    const [started] = await kit.placement.start(params)
    const expected = {
      status: 'running',
      ownerId: 'w-1',
      claimToken,
      leaseEpoch: 1,
      leaderEpoch: lead.epoch,
      commitNo: 0,
    } as const
    assertMatches(started ?? null, { id: run.id, ...expected, payload: run.payload }, 'the run')
    assert(started?.startedAt != null && started.deadlineAt !== null && started.leaseUntil !== null, 'its times')
    // Sent again for want of an answer: the token finds it.
    assertEqual(await kit.placement.start(params), [], 'start again')
    const [found] = await kit.claim({ claimToken, repeat: true })
    assertEqual(found?.id, run.id, 'by its token')
    const holder = new Holder(kit, started as RunRecord)
    assertMatches(await holder.leave('complete'), { status: 'completed', leaderEpoch: lead.epoch }, 'its end')
  },

  'the end is refused that names another leader epoch': async (kit) => {
    const { lead, run } = await assigned(kit)
    const [started] = await start(kit, run)
    const { lease } = new Holder(kit, started as RunRecord)
    const send = async (leaderEpoch: number | null) => {
      const commit = runCommit({ lease: { ...lease, leaderEpoch }, commitNo: 1 }, { outcome: outcomeOf('complete') })
      return itemAt(await kit.storage.commit([commit]), 0, 'answers').kept
    }
    assertEqual([await send(null), await send(lead.epoch + 1)], [false, false], 'other epochs')
    // Another leader since changes nothing for who has started.
    await kit.cluster.resign(lead)
    await leadOf(kit, 'leader-2')
    assertEqual(await send(lead.epoch), true, 'its own epoch')
  },

  'nobody else starts it, nor its worker what has changed': async (kit) => {
    const { run } = await assigned(kit)
    assertEqual(await start(kit, run, { workerId: 'w-2' }), [], 'another worker')
    assertEqual(await start(kit, { ...run, version: run.version + 1 }), [], 'another version')
    assertEqual(await start(kit, { ...run, id: newId() }), [], 'another run')
    assertMatches(await kit.run(run.id), { status: 'assigned', version: run.version }, 'the run')
    assertEqual((await start(kit, run)).length, 1, 'its worker')
  },

  'what is not assigned is not started, nor declined': async (kit) => {
    const { run } = await assigned(kit)
    await start(kit, run)
    assertEqual(await start(kit, await kit.run(run.id)), [], 'while it runs')
    assertEqual(await kit.placement.decline(paramsOf(await kit.run(run.id))), [false], 'nor declined')
  },

  'a claim later has no leader epoch': async (kit) => {
    const { run } = await assigned(kit)
    const [started] = await start(kit, run)
    assertMatches(await new Holder(kit, started as RunRecord).leave('release'), { status: 'pending' }, 'released')
    const holder = await kit.hold()
    assertEqual([holder.id, holder.run.leaderEpoch], [run.id, null], 'claimed')
  },
})

export const ORPHAN_CASES = casesOf('cluster', 'orphans', {
  'a worker declines, and the run is assigned anew': async (kit) => {
    const { lead, run } = await assigned(kit, { concurrencyKey: 'k' })
    assertEqual(await kit.placement.decline(paramsOf(run, { workerId: 'w-2' })), [false], 'another worker')
    assertEqual(await kit.placement.decline(paramsOf({ ...run, version: 99 })), [false], 'another version')
    assertEqual(await kit.placement.decline(paramsOf(run, { events: [template('run:orphan')] })), [true], 'its worker')
    const declined = await kit.run(run.id)
    assertMatches(declined, { status: 'orphaned', concurrencySlot: null, lastEventSequence: 1 }, 'the run')
    assertEqual([await kit.claimedIds(), await start(kit, declined)], [[], []], 'nobody takes it')
    assertEqual(
      (await waiting(kit)).map(({ runId }) => runId),
      [run.id],
      'it waits',
    )
    const again = assignmentOf(declined, { workerId: 'w-2' })
    assertEqual(await kit.placement.assign(lead, [again]), [true], 'assigned anew')
    assertMatches(await kit.run(run.id), { status: 'assigned', assignedWorkerId: 'w-2', assignments: 2 }, 'the run')
  },

  'a slot that is kept stays with a run that is declined': async (kit) => {
    const kept = { concurrencyKey: 'k', holdKeyWhileWaiting: true }
    const { lead, run } = await assigned(kit, kept)
    await kit.placement.decline(paramsOf(run))
    const declined = await kit.run(run.id)
    assertMatches(declined, { concurrencySlot: null }, 'before its first start')
    await kit.placement.assign(lead, [assignmentOf(declined)])
    const [started] = await start(kit, await kit.run(run.id))
    const released = await new Holder(kit, started as RunRecord).leave('release')
    await kit.placement.assign(lead, [assignmentOf(released)])
    await kit.placement.decline(paramsOf(await kit.run(run.id)))
    assertMatches(await kit.run(run.id), { status: 'orphaned', concurrencySlot: 0 }, 'after it')
  },

  'an assignment is taken back from a worker that is gone, once it is old enough': async (kit) => {
    const { lead, run } = await assigned(kit)
    assertEqual(await orphan(kit, { lead }), [], 'a young one')
    const [taken] = await orphan(kit, { lead, reassignAfterMs: AT_ONCE_MS, events: [template('run:orphan')] })
    assertMatches(taken ?? null, { id: run.id, status: 'orphaned', assignments: 1, lastEventSequence: 1 }, 'it')
    assertEqual(await orphan(kit, { lead, reassignAfterMs: AT_ONCE_MS }), [], 'only once')
  },

  'one that lives keeps it longer': async (kit) => {
    await kit.placement.beat(newBeat())
    const { lead, run } = await assigned(kit)
    assertEqual(await orphan(kit, { lead, reassignAfterMs: AT_ONCE_MS }), [], 'while it lives')
    await kit.placement.beat(newBeat({ presence: 'detached' }))
    assertEqual((await orphan(kit, { lead, reassignAfterMs: AT_ONCE_MS })).length, 1, 'gone')
    await kit.placement.beat(newBeat())
    await kit.placement.assign(lead, [assignmentOf(await kit.run(run.id))])
    assertEqual((await orphan(kit, { lead, livingAfterMs: AT_ONCE_MS })).length, 1, 'much too old')
  },

  'no more than wanted are taken back, and an old leader takes back nothing': async (kit) => {
    const old = await leadOf(kit, 'leader-1', -1000)
    const lead = await leadOf(kit, 'leader-2')
    await assigned(kit, { concurrencyKey: 'k', concurrencyLimit: 2 }, lead)
    await assigned(kit, { concurrencyKey: 'k', concurrencyLimit: 2 }, lead)
    assertEqual(await orphan(kit, { lead: old, reassignAfterMs: AT_ONCE_MS }), [], 'by the old one')
    assertEqual((await orphan(kit, { lead, reassignAfterMs: AT_ONCE_MS, limit: 1 })).length, 1, 'one')
    assertMatches(await kit.storage.counts({}), { assigned: 1, orphaned: 1 }, 'counts')
  },

  'what is not assigned is not taken back': async (kit) => {
    const { lead, run } = await assigned(kit)
    await start(kit, run)
    assertEqual(await orphan(kit, { lead, reassignAfterMs: AT_ONCE_MS }), [], 'what runs')
    await kit.enqueue()
    assertEqual(await orphan(kit, { lead, reassignAfterMs: AT_ONCE_MS }), [], 'what waits')
  },

  'while somebody leads, or did a moment ago, others take nothing back and free nothing': async (kit) => {
    const { lead, run } = await assigned(kit)
    await kit.cluster.resign(lead)
    assertEqual((await kit.placement.assigned('w-1', 1)).isLed, true, 'a moment after its end')
    assertEqual(await orphan(kit, { reassignAfterMs: AT_ONCE_MS }), [], 'orphan')
    await kit.placement.decline(paramsOf(run))
    assertEqual(await kit.placement.free(10), 0, 'free')
    assertMatches(await kit.run(run.id), { status: 'orphaned' }, 'the run')
  },

  'where nobody leads any worker frees what is assigned, and claims it': async (kit) => {
    const { lead, run } = await assigned(kit)
    const young = await assigned(kit, {}, lead)
    await leadOf(kit, lead.workerId, -FAR_MS)
    assertEqual((await kit.placement.assigned('w-1', 1)).isLed, false, 'there is no leader')
    await kit.placement.decline(paramsOf(run))
    const other = await kit.start({ jobName: 'other' })
    assertEqual([await kit.placement.free(0), await kit.placement.free(10)], [0, 1], 'free')
    assertMatches(await kit.run(other.id), { status: 'running' }, 'what runs')
    assertMatches(await kit.run(young.run.id), { status: 'assigned' }, 'what is assigned')
    assertEqual(await kit.claimedIds(), [run.id], 'claimed')
    assertEqual((await orphan(kit, { reassignAfterMs: AT_ONCE_MS })).length, 1, 'orphan')
  },

  'where nobody ever led there is no leader': async (kit) => {
    assertEqual(await kit.placement.assigned('w-1', 10), { runs: [], isLed: false }, 'nothing')
  },
})
