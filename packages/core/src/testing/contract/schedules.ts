import type { Firing, Lead, NewRun, NewSchedule, ScheduleRecord } from '../../port'
import { assert, assertEqual, assertMatches, itemAt } from '../assert'
import { FAR_MS, newId, newRun } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import type { Kit } from './kit'
import { leadOf } from './leads'

const PAST = '2026-01-31T09:00:00.000Z'
const LATER = '2026-01-31T10:00:00.000Z'
const FUTURE = '2999-01-31T09:00:00.000Z'

export function newSchedule(over: Partial<NewSchedule> = {}): NewSchedule {
  const id = newId()
  const content = { jobName: 'job', payload: '{"n":1}', definition: '{"every":1000}', overlap: 'allow' } as const
  return { id, tenant: '', name: `schedule-${id}`, source: null, ...content, ...over }
}

export async function create(kit: Kit, over: Partial<NewSchedule> = {}): Promise<ScheduleRecord> {
  const [answer] = await kit.cluster.schedules.create([newSchedule(over)])
  assert(answer?.created === true, 'create: should have created the schedule')
  return answer.schedule
}

export function runOf({ id, jobName }: ScheduleRecord, scheduledFor: string, over: Partial<NewRun> = {}): NewRun {
  return newRun({ jobName, scheduleId: id, scheduledFor, ...over })
}

export function firingOf(schedule: ScheduleRecord, over: Partial<Firing> = {}): Firing {
  const { id: scheduleId, version } = schedule
  const runs = [runOf(schedule, PAST)]
  return { scheduleId, version, runs, firedUntil: PAST, nextAt: FUTURE, missed: 0, ends: [], ...over }
}

async function recordOf(kit: Kit, { tenant, name }: ScheduleRecord): Promise<ScheduleRecord> {
  const found = await kit.cluster.schedules.get({ tenant, name })
  assert(found !== null, `get: schedule ${name} should be there`)
  return found.schedule
}

export const NOTHING_DONE = { kept: false, created: [], ended: [] }

const idsOf = (schedules: readonly { readonly schedule: ScheduleRecord }[]) =>
  schedules.map(({ schedule }) => schedule.id)

export const SCHEDULE_CASES = casesOf('cluster', 'schedules', {
  'a new one is due, to have its first instant computed': async (kit) => {
    const wanted = newSchedule({ tenant: 'acme', source: 'code', overlap: 'queue', payload: null })
    const [answer] = await kit.cluster.schedules.create([wanted])
    assertMatches(answer?.schedule ?? null, { ...wanted, version: 1, pausedBecause: null, fired: 0, missed: 0 }, 'it')
    const { firedUntil, nextAt, dueAt, createdAt, updatedAt, endedAt } = await recordOf(kit, answer?.schedule as never)
    for (const instant of [firedUntil, createdAt, updatedAt]) assertInstant(instant, 'an instant')
    assertEqual([firedUntil, nextAt, dueAt, endedAt], [createdAt, null, createdAt, null], 'its times')
    const { now, schedules, nextInMs } = await kit.cluster.schedules.due(10)
    assertEqual([idsOf(schedules), nextInMs], [[wanted.id], null], 'what is due')
    assert(now >= createdAt, `now: is ${now}, before ${createdAt}`)
  },

  'a name is taken once in a tenant, and the same schedule may be sent again': async (kit) => {
    const first = newSchedule({ name: 'nightly' })
    const second = newSchedule({ name: 'nightly', payload: '2' })
    const other = newSchedule({ name: 'nightly', tenant: 'acme' })
    const answers = await kit.cluster.schedules.create([first, second, other])
    assertEqual(
      answers.map(({ created }) => created),
      [true, false, true],
      'created',
    )
    assertEqual(
      answers.map(({ schedule }) => schedule.id),
      [first.id, first.id, other.id],
      'ids',
    )
    const [again] = await kit.cluster.schedules.create([first])
    assertEqual([again?.created, again?.schedule.id], [true, first.id], 'sent again')
  },

  'a firing creates its runs and moves the schedule on': async (kit) => {
    const schedule = await create(kit)
    const events = [{ type: 'run:trigger', payload: '{"by":"time"}' }]
    const runs = [runOf(schedule, PAST, { labels: { a: 'b' }, events }), runOf(schedule, LATER, { payload: null })]
    const firing = firingOf(schedule, { runs, firedUntil: LATER, missed: 3 })
    const answers = await kit.cluster.schedules.fire(await leadOf(kit), [firing])
    assertEqual(answers, [{ kept: true, created: runs.map(({ id }) => id), ended: [] }], 'the answer')
    const after = { firedUntil: LATER, nextAt: FUTURE, dueAt: FUTURE, fired: 2, missed: 3, version: 2, endedAt: null }
    assertMatches(await recordOf(kit, schedule), after, 'the schedule')
    const [first, second] = await Promise.all(runs.map(({ id }) => kit.run(id)))
    const made = {
      status: 'pending' as const,
      jobName: 'job',
      scheduleId: schedule.id,
      scheduledFor: PAST,
      labels: { a: 'b' },
    }
    assertMatches(first ?? null, { ...made, lastEventSequence: 1, payload: '{"n":1}' }, 'the first run')
    assertMatches(second ?? null, { scheduledFor: LATER, payload: null, labels: {} }, 'the second run')
    const labelled = await kit.storage.getRuns({ tenant: first?.tenant ?? '', labels: { a: 'b' } })
    assertEqual(
      labelled.map(({ id }) => id),
      [first?.id],
      'runs with the label',
    )
    const stored = await kit.storage.events?.getEvents(first?.id ?? '', {})
    assertEqual(stored?.map(({ type }) => type) ?? ['run:trigger'], ['run:trigger'], 'stored events')
    assertEqual((await kit.claimedIds({ jobs: ['job'] })).length, 2, 'runs claimed')
    const { schedules, nextInMs } = await kit.cluster.schedules.due(10)
    assertEqual(schedules, [], 'what is due')
    assert(nextInMs !== null && nextInMs > FAR_MS, `nextInMs: is ${nextInMs}`)
  },

  'many fire in one write, each by its own version': async (kit) => {
    const [one, other, third] = [await create(kit), await create(kit), await create(kit)]
    const stale = firingOf(other, { version: 7 })
    const answers = await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(one), stale, firingOf(third)])
    assertEqual(
      answers.map(({ kept }) => kept),
      [true, false, true],
      'kept',
    )
    assertEqual(itemAt(answers, 1, 'answers').created, [], 'runs of the one that was changed')
    assertMatches(await recordOf(kit, other), { version: 1, fired: 0, nextAt: null }, 'the one that was changed')
    assertEqual((await kit.storage.getRuns({})).length, 2, 'runs')
  },

  'a firing whose answer was lost does nothing when it is sent again': async (kit) => {
    const schedule = await create(kit)
    const lead = await leadOf(kit)
    const firing = firingOf(schedule)
    await kit.cluster.schedules.fire(lead, [firing])
    assertEqual(await kit.cluster.schedules.fire(lead, [firing]), [NOTHING_DONE], 'the second answer')
    const anew = { ...firing, runs: [runOf(schedule, LATER)] }
    assertEqual(await kit.cluster.schedules.fire(lead, [anew]), [NOTHING_DONE], 'with another run')
    assertEqual((await kit.storage.getRuns({})).length, 1, 'runs')
  },

  'nobody fires without the lead': async (kit) => {
    const schedule = await create(kit)
    const lead = await leadOf(kit, 'w-1', -1000)
    const next = await leadOf(kit, 'w-2')
    for (const lost of [lead, { ...next, workerId: 'w-1' }, { ...next, epoch: 1 }, { ...next, name: 'other' }]) {
      assertEqual(await kit.cluster.schedules.fire(lost, [firingOf(schedule)]), [NOTHING_DONE], 'answer')
    }
    assertEqual((await kit.storage.getRuns({})).length, 0, 'runs')
    assertEqual((await kit.cluster.schedules.fire(next, [firingOf(schedule)]))[0]?.kept, true, 'who has it')
  },

  'whose time is over still fires when nobody else has the lead': async (kit) => {
    const schedule = await create(kit)
    const lead = await leadOf(kit, 'w-1', -1000)
    assertEqual((await kit.cluster.schedules.fire(lead, [firingOf(schedule)]))[0]?.kept, true, 'kept')
  },

  'an instant has one run, whoever creates it': async (kit) => {
    const schedule = await create(kit)
    const byHand = runOf(schedule, PAST)
    const [first] = await kit.storage.enqueue([byHand])
    assertEqual(first?.created, true, 'the first')
    const [second] = await kit.storage.enqueue([runOf(schedule, PAST)])
    assertEqual([second?.created, second?.run.id], [false, byHand.id], 'the second')
    const answers = await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(schedule)])
    assertEqual(answers, [{ kept: true, created: [], ended: [] }], 'the firing')
    assertEqual((await kit.storage.getRuns({})).length, 1, 'runs')
    const unscheduled = [newRun({ scheduleId: schedule.id }), newRun({ scheduleId: schedule.id })]
    assertEqual(
      (await kit.storage.enqueue(unscheduled)).map(({ created }) => created),
      [true, true],
      'without an instant',
    )
  },

  'two schedules of one job may share an instant': async (kit) => {
    const [one, other] = [await create(kit), await create(kit)]
    const answers = await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(one), firingOf(other)])
    assertEqual(
      answers.map(({ created }) => created.length),
      [1, 1],
      'runs',
    )
  },

  'what has fired does not fire again when its run is gone': async (kit) => {
    const schedule = await create(kit)
    const lead = await leadOf(kit)
    const firing = firingOf(schedule)
    await kit.cluster.schedules.fire(lead, [firing])
    const [run] = await kit.storage.getRuns({})
    await kit.order('cancel', run?.id ?? '')
    await kit.order('remove', run?.id ?? '')
    const late = { ...firing, runs: [runOf(schedule, PAST)] }
    assertEqual(await kit.cluster.schedules.fire(lead, [late]), [NOTHING_DONE], 'the answer')
    assertEqual((await kit.storage.getRuns({})).length, 0, 'runs')
    assertEqual((await recordOf(kit, schedule)).firedUntil, PAST, 'firedUntil')
  },

  'one without a next instant has ended': async (kit) => {
    const schedule = await create(kit)
    await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(schedule, { nextAt: null })])
    const { endedAt, dueAt, nextAt } = await recordOf(kit, schedule)
    assertInstant(endedAt, 'endedAt')
    assertEqual([dueAt, nextAt], [null, null], 'times')
    assertEqual((await kit.cluster.schedules.due(10)).schedules, [], 'what is due')
  },

  'they are due in the order of their instants, the earliest first': async (kit) => {
    const made = [await create(kit), await create(kit), await create(kit)]
    const lead = await leadOf(kit)
    const at = ['2026-03-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z']
    const firings = made.map((each, index) => firingOf(each, { runs: [], nextAt: at[index] ?? null }))
    await kit.cluster.schedules.fire(lead, firings)
    const order = [1, 2, 0].map((index) => made[index]?.id)
    assertEqual(idsOf((await kit.cluster.schedules.due(10)).schedules), order, 'all')
    assertEqual(idsOf((await kit.cluster.schedules.due(2)).schedules), order.slice(0, 2), 'the first two')
  },

  'a paused one is not due and does not fire': async (kit) => {
    const schedule = await create(kit)
    const { tenant, name } = schedule
    const paused = await kit.cluster.schedules.change({ tenant, name, pausedBecause: 'by hand', isAnew: false })
    assertMatches(paused, { pausedBecause: 'by hand', dueAt: null, version: 2 }, 'the answer')
    assertEqual((await kit.cluster.schedules.due(10)).schedules, [], 'what is due')
    const lead = await leadOf(kit)
    assertEqual((await kit.cluster.schedules.fire(lead, [firingOf(schedule)]))[0]?.kept, false, 'a firing before')
    const resumed = await kit.cluster.schedules.change({ tenant, name, pausedBecause: null, isAnew: true })
    assertMatches(resumed, { pausedBecause: null, nextAt: null, version: 3 }, 'the resumed one')
    assertEqual(idsOf((await kit.cluster.schedules.due(10)).schedules), [schedule.id], 'what is due afterwards')
  },

  'a change of what it does leaves its instants, unless it begins anew': async (kit) => {
    const schedule = await create(kit, { tenant: 'acme', source: 'code' })
    const { tenant, name } = schedule
    await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(schedule, { nextAt: null })])
    const content = { jobName: 'other', payload: null, definition: '{"every":1}', overlap: 'skip' } as const
    const changed = await kit.cluster.schedules.change({ tenant, name, content, isAnew: false })
    assertMatches(
      changed,
      { ...content, source: 'code', firedUntil: PAST, dueAt: null, fired: 1, version: 3 },
      'changed',
    )
    assert(changed?.endedAt !== null, 'endedAt: should have stayed')
    const anew = await kit.cluster.schedules.change({ tenant, name, source: null, version: 3, isAnew: true })
    assertMatches(anew, { ...content, source: null, nextAt: null, endedAt: null, fired: 1, version: 4 }, 'begun anew')
    assert((anew?.firedUntil ?? '') > PAST && anew?.dueAt === anew?.firedUntil, 'firedUntil: should be now')
    assertEqual(await kit.cluster.schedules.change({ tenant, name, version: 3, isAnew: true }), null, 'an old version')
    assertEqual(await kit.cluster.schedules.change({ tenant: '', name, isAnew: true }), null, "another tenant's")
    assertEqual(await recordOf(kit, schedule), anew, 'get and the answer')
  },

  'one that is removed is gone, its runs are not': async (kit) => {
    const schedule = await create(kit)
    await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(schedule)])
    assertEqual(await kit.cluster.schedules.remove({ tenant: 'acme', name: schedule.name }), false, "another tenant's")
    assertEqual(await kit.cluster.schedules.remove(schedule), true, 'removed')
    assertEqual(await kit.cluster.schedules.remove(schedule), false, 'removed again')
    assertEqual(await kit.cluster.schedules.get(schedule), null, 'get')
    assertEqual((await kit.storage.getRuns({})).length, 1, 'runs')
    assertEqual((await create(kit, { name: schedule.name })).firedUntil > PAST, true, 'the name is free')
  },

  'open runs are told of those that ask': async (kit) => {
    const [asking, other] = [await create(kit, { overlap: 'skip' }), await create(kit)]
    const runs = [runOf(asking, PAST), newRun({ scheduleId: asking.id })]
    const [first, second] = runs.map(({ id }) => id)
    await kit.storage.enqueue([...runs, runOf(other, PAST)])
    const open = async () => (await kit.cluster.schedules.get(asking))?.openRuns ?? []
    const both = [
      { id: first, scheduledFor: PAST },
      { id: second, scheduledFor: null },
    ]
    assertEqual(
      [...(await open())].sort((a, b) => (a.id < b.id ? -1 : 1)),
      both,
      'open runs',
    )
    await kit.order('cancel', second ?? '')
    assertEqual(await open(), both.slice(0, 1), 'open runs after an end')
    await kit.order('retry', second ?? '')
    assertEqual((await open()).length, 2, 'open runs after a retry by hand')
    const { schedules } = await kit.cluster.schedules.due(10)
    assertEqual(
      schedules.map(({ openRuns }) => openRuns.length),
      [2, 0],
      'open runs of what is due',
    )
  },

  'they are listed by tenant and name, in pages': async (kit) => {
    const names = ['b', 'a', 'c']
    for (const name of names) await create(kit, { name, source: name === 'c' ? 'code' : null })
    await create(kit, { name: 'a', tenant: 'acme', jobName: 'other' })
    const listed = async (query: Parameters<typeof kit.cluster.schedules.list>[0]) =>
      (await kit.cluster.schedules.list(query)).map(({ tenant, name }) => `${tenant}/${name}`)
    assertEqual(await listed({}), ['/a', '/b', '/c', 'acme/a'], 'all')
    assertEqual(await listed({ limit: 2, after: { tenant: '', name: 'b' } }), ['/c', 'acme/a'], 'the second page')
    assertEqual(await listed({ tenant: '' }), ['/a', '/b', '/c'], 'of a tenant')
    assertEqual(await listed({ tenant: '', limit: 1, after: { tenant: '', name: 'a' } }), ['/b'], 'a page of a tenant')
    assertEqual(await listed({ tenant: 'acme', after: { tenant: '', name: 'z' } }), ['acme/a'], 'behind another tenant')
    assertEqual(await listed({ tenant: 'acme', after: { tenant: 'b', name: '' } }), [], 'before another tenant')
    assertEqual(await listed({ source: 'code' }), ['/c'], 'of a source')
    assertEqual(await listed({ jobName: 'other' }), ['acme/a'], 'of a job')
  },

  'they are listed by the labels of their runs, and by whether they are paused or have ended': async (kit) => {
    const labelled = (labels: object) => JSON.stringify({ timing: 1, run: { labels } })
    await create(kit, { name: 'a', definition: labelled({ team: 'red', 'a"b': 'x%' }) })
    await create(kit, { name: 'b', definition: labelled({ team: 'red', size: 's' }) })
    await create(kit, { name: 'c', definition: labelled({ team: 'blue' }) })
    const ended = await create(kit, { name: 'd' })
    await kit.cluster.schedules.fire(await leadOf(kit), [firingOf(ended, { nextAt: null })])
    await kit.cluster.schedules.change({ tenant: '', name: 'b', pausedBecause: 'why not', isAnew: false })
    const listed = async (query: Parameters<typeof kit.cluster.schedules.list>[0]) =>
      (await kit.cluster.schedules.list(query)).map(({ name }) => name).join()
    assertEqual(await listed({ labels: { team: 'red' } }), 'a,b', 'with a label')
    assertEqual(await listed({ labels: { team: 'red', size: 's' } }), 'b', 'with both')
    assertEqual(await listed({ labels: { 'a"b': 'x%' } }), 'a', 'with signs')
    assertEqual(await listed({ labels: { team: 're' } }), '', 'with a part of it')
    assertEqual(await listed({ labels: { team: 'red' }, limit: 1, after: { tenant: '', name: 'a' } }), 'b', 'a page')
    assertEqual(await listed({ isPaused: true }), 'b', 'paused')
    assertEqual(await listed({ isPaused: false }), 'a,c,d', 'not paused')
    assertEqual(await listed({ isEnded: true }), 'd', 'ended')
    assertEqual(await listed({ isEnded: false, labels: {} }), 'a,b,c', 'not ended')
  },

  'those that ended long ago are purged, so many at a time, unless code defines them': async (kit) => {
    const names = ['a', 'b', 'c']
    const lead = await leadOf(kit)
    for (const name of names) {
      const over = await create(kit, { name })
      await kit.cluster.schedules.fire(lead, [firingOf(over, { nextAt: null })])
    }
    const ofCode = await create(kit, { name: 'code', source: 'app' })
    await kit.cluster.schedules.fire(lead, [firingOf(ofCode, { nextAt: null })])
    await create(kit, { name: 'open' })
    const purge = (olderThanMs: number) => kit.cluster.schedules.purge(lead, { olderThanMs, limit: 2 })
    assertEqual(await purge(FAR_MS), 0, 'of an hour ago')
    assertEqual([await purge(-FAR_MS), await purge(-FAR_MS), await purge(-FAR_MS)], [2, 1, 0], 'purged')
    const left = await kit.cluster.schedules.list({})
    assertEqual(left.map(({ name }) => name).sort(), ['code', 'open'], 'left')
    assertEqual((await kit.storage.getRuns({})).length, 4, 'runs')
  },

  'who has lost the lead purges nothing': async (kit) => {
    const lost = await leadOf(kit, 'w-1', -1000)
    const lead = await leadOf(kit, 'w-2')
    await kit.cluster.schedules.fire(lead, [firingOf(await create(kit), { nextAt: null })])
    const purge = (by: Lead) => kit.cluster.schedules.purge(by, { olderThanMs: -FAR_MS, limit: 10 })
    assertEqual(await purge(lost), 0, 'by who led before')
    assertEqual(await purge({ ...lead, epoch: lead.epoch - 1 }), 0, 'under an older epoch')
    assertEqual(await purge({ ...lead, workerId: 'w-1' }), 0, 'by another one')
    assertEqual((await kit.cluster.schedules.list({})).length, 1, 'schedules')
    assertEqual(await purge(lead), 1, 'by who leads')
  },

  'two who fire at once create the runs of one': async (kit) => {
    const schedules = await Promise.all(Array.from({ length: 20 }, () => create(kit)))
    const lead = await leadOf(kit)
    const firings = () => schedules.map((each) => firingOf(each))
    const answers = await Promise.all(Array.from({ length: 4 }, () => kit.cluster.schedules.fire(lead, firings())))
    assertEqual(answers.flat().filter(({ kept }) => kept).length, 20, 'firings')
    assertEqual((await kit.storage.getRuns({})).length, 20, 'runs')
  },

  'they are there after a restart': async (kit) => {
    const schedule = await create(kit)
    const lead = await leadOf(kit)
    await kit.cluster.schedules.fire(lead, [firingOf(schedule)])
    const before = await recordOf(kit, schedule)
    await kit.reopen()
    assertEqual(await recordOf(kit, schedule), before, 'the schedule')
    const late = firingOf(before, { runs: [runOf(schedule, LATER)], firedUntil: LATER })
    assertEqual((await kit.cluster.schedules.fire(lead, [late]))[0]?.kept, true, 'the next firing')
  },
})
