import type { AuditNote, AuditQuery, AuditRecord } from '../../port'
import { auditViewOf, auditViewOfSchedule } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS, newId, newRun } from './builders'
import { casesOf } from './contract-case'
import { assertInstant } from './instants'
import { commandOf, type Kit } from './kit'
import { newSchedule } from './schedules'

function noteOf(action: string, actor = 'ann'): AuditNote {
  return { id: newId(), actor, action }
}

/** The records with their values decoded, newest first. */
async function records(kit: Kit, query: AuditQuery = {}) {
  const decode = (text: string | null): unknown => (text === null ? null : JSON.parse(text))
  const found = await kit.audit.list(query)
  return found.map(({ before, after, ...rest }) => ({ ...rest, before: decode(before), after: decode(after) }))
}

const actions = (found: readonly Pick<AuditRecord, 'action'>[]) => found.map(({ action }) => action)

type Kind = Parameters<typeof commandOf>[0]

/** How a run comes into a state in which the command can be obeyed. */
const READY: Readonly<Record<Kind, (kit: Kit) => Promise<string>>> = {
  cancel: async (kit) => (await kit.enqueue({ tenant: 'acme' })).id,
  park: async (kit) => (await kit.enqueue({ tenant: 'acme' })).id,
  retry: async (kit) => (await (await kit.start({ tenant: 'acme' })).leave('fail')).id,
  unpark: async (kit) => (await (await kit.start({ tenant: 'acme' })).leave('park')).id,
  failParked: async (kit) => (await (await kit.start({ tenant: 'acme' })).leave('park')).id,
  remove: async (kit) => (await (await kit.start({ tenant: 'acme' })).leave('fail')).id,
}

const OF_COMMANDS = (Object.keys(READY) as Kind[]).flatMap((kind) =>
  casesOf('audit', 'audit', {
    [`${kind} leaves who, what, when, before and after`]: async (kit) => {
      const runId = await READY[kind](kit)
      const before = auditViewOf(await kit.run(runId))
      const audit = noteOf(`do ${kind}`)
      const answer = await kit.storage.command({ ...commandOf(kind, runId), audit })
      assert(answer.applied, `${kind} should be applied`)
      const [record, ...others] = await records(kit)
      assert(record !== undefined, 'there should be a record')
      const { at, ...rest } = record
      assertInstant(at, 'at')
      const after = kind === 'remove' ? null : auditViewOf(answer.run)
      assertEqual(rest, { ...audit, tenant: 'acme', targetKind: 'run', target: runId, before, after }, 'the record')
      assertEqual(others, [], 'other records')
      await kit.reopen()
      assertEqual((await records(kit)).length, 1, 'records after a kill')
    },

    [`${kind} that is refused leaves nothing, nor one without a note`]: async (kit) => {
      const runId = await READY[kind](kit)
      const refused = { ...commandOf(kind, runId), audit: noteOf('refused') }
      await kit.storage.command({ ...refused, tenant: 'other' })
      await kit.storage.command({ ...refused, runId: newId() })
      await kit.order(kind, runId)
      if (kind !== 'park') await kit.storage.command(refused)
      assertEqual(await records(kit), [], 'records')
    },
  }),
)

const OTHERS = casesOf('audit', 'audit', {
  'a running run that is asked to end shows so': async (kit) => {
    const holder = await kit.start()
    await kit.storage.command({ ...commandOf('cancel', holder.id), audit: noteOf('cancel') })
    const { cancelRequestedAt } = await kit.run(holder.id)
    const [record] = await records(kit)
    assertMatches((record?.before ?? null) as object, { status: 'running', cancelRequestedAt: null }, 'before')
    assertMatches((record?.after ?? null) as object, { status: 'running', cancelRequestedAt }, 'after')
  },

  'a signal leaves which it was, and one that is not kept leaves nothing': async (kit) => {
    if (kit.storage.signals === undefined) return
    const { id: runId } = await kit.enqueue({ tenant: 'acme' })
    const send = (name: string) =>
      kit.signals.send({ runId, name, payload: '1', dedupeKey: 'once', events: [], audit: noteOf('signal') })
    await send('approve')
    await send('again')
    await kit.order('cancel', runId)
    await kit.signals.send({ runId, name: 'late', payload: '1', dedupeKey: null, events: [], audit: noteOf('late') })
    const [record, ...others] = await records(kit)
    const of = { tenant: 'acme', targetKind: 'run', target: runId } as const
    assertMatches(record ?? null, { ...of, action: 'signal', after: { signal: 'approve' } }, 'the record')
    assertMatches((record?.before ?? null) as object, { status: 'pending' }, 'before')
    assertEqual(others, [], 'other records')
  },

  'a purge leaves which runs it has removed, and one of nothing leaves nothing': async (kit) => {
    const ids: string[] = []
    for (let index = 0; index < 3; index++) {
      const holder = await kit.start()
      await holder.leave('complete')
      ids.push(holder.id)
    }
    const purge = { statuses: ['completed'] as const, limit: 2 }
    await kit.storage.purge({ ...purge, audit: noteOf('first') })
    await kit.storage.purge({ ...purge, audit: noteOf('second') })
    await kit.storage.purge({ ...purge, audit: noteOf('third') })
    const found = await records(kit)
    assertEqual(actions(found), ['second', 'first'], 'actions')
    const removed = found.flatMap(({ before }) => (before as { runs: string[] }).runs)
    assertEqual([...removed].sort(), ids, 'runs that were removed')
    assertMatches(found[0] ?? null, { targetKind: 'runs', target: '', tenant: '', after: null }, 'the record')
  },

  'a job that is paused and resumed leaves both': async (kit) => {
    if (kit.storage.limits === undefined) return
    await kit.limits.pause('job', noteOf('pause'))
    await kit.limits.resume('job', noteOf('resume', 'bob'))
    await kit.limits.pause('job')
    const of = { tenant: '', targetKind: 'job', target: 'job' } as const
    const [second, first, ...others] = await records(kit)
    assertMatches(first ?? null, { ...of, actor: 'ann', before: { paused: false }, after: { paused: true } }, 'pause')
    assertMatches(second ?? null, { ...of, actor: 'bob', before: { paused: true }, after: { paused: false } }, 'resume')
    assertEqual(others, [], 'other records')
  },

  'a fork leaves of which run it is': async (kit) => {
    const { forks } = kit.storage
    if (forks === undefined) return
    const { id: originId } = await kit.enqueue({ tenant: 'acme' })
    const before = auditViewOf(await kit.run(originId))
    const run = newRun({ tenant: 'acme' })
    await forks.fork({ run, originId, steps: [], audit: noteOf('fork') })
    await forks.fork({ run: newRun(), originId, steps: [] })
    await forks.fork({ run: newRun(), originId: newId(), steps: [], audit: noteOf('refused') })
    const [record, ...others] = await records(kit)
    const of = { tenant: 'acme', targetKind: 'run', target: originId, action: 'fork' } as const
    assertMatches(record ?? null, { ...of, before, after: { run: run.id } }, 'the record')
    assertEqual(others, [], 'other records')
  },

  'a schedule that is created, changed and removed leaves each': async (kit) => {
    if (kit.storage.cluster === undefined) return
    const { schedules } = kit.storage.cluster
    const schedule = newSchedule({ tenant: 'acme', name: 'nightly', definition: '{"every":[1,{"a":"b"}]}' })
    const key = { tenant: 'acme', name: 'nightly' }
    const views: object[] = []
    const see = async () => views.push(auditViewOfSchedule((await schedules.get(key))?.schedule as never))
    await schedules.create([schedule], noteOf('create'))
    await see()
    await schedules.create([newSchedule(key)], noteOf('refused'))
    await schedules.change({ ...key, pausedBecause: 'a feast', isAnew: false, audit: noteOf('pause', 'bob') })
    await see()
    await schedules.change({ ...key, version: 1, isAnew: false, audit: noteOf('refused') })
    await schedules.change({ ...key, pausedBecause: null, isAnew: true })
    await see()
    await schedules.remove(key, noteOf('remove'))
    await schedules.remove(key, noteOf('refused'))
    const found = await records(kit)
    const of = { tenant: 'acme', targetKind: 'schedule', target: 'nightly' } as const
    const [created, paused, resumed] = views
    assertEqual(
      found.reverse().map(({ id: _id, at: _at, ...rest }) => rest),
      [
        { ...of, actor: 'ann', action: 'create', before: null, after: created },
        { ...of, actor: 'bob', action: 'pause', before: created, after: paused },
        { ...of, actor: 'ann', action: 'remove', before: resumed, after: null },
      ],
      'the records',
    )
  },

  'runs of a schedule that are started by hand leave which they are': async (kit) => {
    if (kit.storage.cluster === undefined) return
    const { schedules } = kit.storage.cluster
    const schedule = newSchedule({ tenant: 'acme', name: 'nightly' })
    await schedules.create([schedule])
    const scheduleId = schedule.id
    const instants = ['2026-01-31T09:00:00.000Z', '2026-01-31T10:00:00.000Z']
    const runs = instants.map((scheduledFor) =>
      newRun({ tenant: 'acme', scheduleId, scheduledFor, labels: { a: 'b' } }),
    )
    const [first, second] = runs
    assert(first !== undefined && second !== undefined, 'there should be two runs')
    await kit.storage.enqueue([first])
    const start = { scheduleId, audit: noteOf('backfill') }
    const again = newRun({ ...first, id: newId() })
    assertEqual(await schedules.startByHand({ ...start, runs: [again, second] }), [second.id], 'runs created')
    assertEqual(await schedules.startByHand({ ...start, runs: [again], audit: noteOf('nothing') }), [], 'none')
    const unknown = { scheduleId: newId(), runs: [newRun()], audit: noteOf('refused') }
    assertEqual(await schedules.startByHand(unknown), [], 'of no schedule')
    assertMatches(
      await kit.run(second.id),
      { labels: { a: 'b' }, scheduledFor: instants[1] ?? null, status: 'pending' },
      'it',
    )
    const [record, ...others] = await records(kit)
    const of = { tenant: 'acme', targetKind: 'schedule', target: 'nightly', action: 'backfill' } as const
    assertMatches(record ?? null, { ...of, before: null, after: { runs: [second.id] } }, 'the record')
    assertEqual(others, [], 'other records')
  },

  'messages that are sent out anew leave how many these are, and which were asked for': async (kit) => {
    if (kit.storage.cluster === undefined) return
    const { inbox, lead: take } = kit.storage.cluster
    const message = { tenant: 'acme', type: 'x', payload: null, dedupeKey: null, start: { afterMs: 0 } }
    const messages = [1, 2].map(() => ({ ...message, id: newId() }))
    await inbox.publish(messages)
    const lead = await take({ name: 'inbox', workerId: 'w-1', ttlMs: FAR_MS })
    assert(lead !== null, 'the lead should be free')
    const query = { tenant: 'acme', types: ['x'] }
    assertEqual((await inbox.replay({ query, limit: 9, audit: noteOf('nothing') })).replayed, 0, 'too early')
    const none = { round: 0, wanted: 0, runs: [], gathered: [] }
    await inbox.deliver(
      lead,
      messages.map(({ id: messageId }) => ({ messageId, ...none })),
    )
    assertEqual((await inbox.replay({ query, limit: 9, audit: noteOf('replay') })).replayed, 2, 'sent out anew')
    const [record, ...others] = await records(kit)
    const of = { tenant: 'acme', targetKind: 'messages', target: '', action: 'replay' } as const
    assertMatches(record ?? null, { ...of, before: null, after: { messages: 2, of: query } }, 'the record')
    assertEqual(others, [], 'other records')
  },

  'messages that are removed by hand leave which these are, and none leaves nothing': async (kit) => {
    if (kit.storage.cluster === undefined) return
    const { inbox, lead: take } = kit.storage.cluster
    const message = { tenant: 'acme', type: 'x', payload: null, dedupeKey: null, start: { afterMs: 0 } }
    const messages = [1, 2, 3].map(() => ({ ...message, id: newId() }))
    await inbox.publish(messages)
    const lead = await take({ name: 'inbox', workerId: 'w-1', ttlMs: FAR_MS })
    assert(lead !== null, 'the lead should be free')
    const purge = (action: string) => inbox.purge(null, { olderThanMs: -FAR_MS, limit: 2, audit: noteOf(action) })
    assertEqual(await purge('nothing'), 0, 'before they were delivered')
    const none = { round: 0, wanted: 0, runs: [], gathered: [] }
    await inbox.deliver(
      lead,
      messages.map(({ id: messageId }) => ({ messageId, ...none })),
    )
    assertEqual([await purge('first'), await purge('second'), await purge('third')], [2, 1, 0], 'removed')
    const found = await records(kit)
    assertEqual(actions(found), ['second', 'first'], 'actions')
    const removed = found.flatMap(({ before }) => (before as { messages: string[] }).messages)
    assertEqual([...removed].sort(), messages.map(({ id }) => id).sort(), 'messages that were removed')
    assertMatches(found[0] ?? null, { targetKind: 'messages', target: '', tenant: '', after: null }, 'the record')
    assertEqual(await inbox.list({}), [], 'messages left')
  },

  'a job that is forgotten leaves what it wanted, and one that wanted nothing leaves nothing': async (kit) => {
    if (kit.storage.cluster === undefined) return
    const { inbox } = kit.storage.cluster
    const wish = (jobName: string, type: string, definition: string) => ({ jobName, type, definition })
    const ofGone = [wish('gone', 'x', '{"where":{"a":1}}'), wish('gone', 'y', '{}')]
    await inbox.subscribe(['gone', 'stays'], [...ofGone, wish('stays', 'x', '{}')])
    await inbox.forget('gone', noteOf('forget'))
    await inbox.forget('gone', noteOf('again'))
    await inbox.forget('stays')
    const [record, ...others] = await records(kit)
    const of = { tenant: '', targetKind: 'job', target: 'gone', action: 'forget' } as const
    assertMatches(record ?? null, { ...of, before: { on: { x: { where: { a: 1 } }, y: {} } }, after: null }, 'it')
    assertEqual(others, [], 'other records')
  },

  'the list is newest first, by conditions, page by page': async (kit) => {
    const runs: string[] = []
    for (const [actor, tenant] of [
      ['ann', 'a'],
      ['bob', 'a'],
      ['ann', 'b'],
    ] as const) {
      const { id } = await kit.enqueue({ tenant })
      runs.push(id)
      await kit.storage.command({ ...commandOf('park', id), audit: noteOf('park', actor) })
      await kit.storage.command({ ...commandOf('cancel', id), audit: noteOf('cancel', actor) })
    }
    const all = await records(kit)
    assertEqual(
      all.map(({ target }) => target),
      [...runs, ...runs].sort().reverse(),
      'targets',
    )
    assertEqual((await records(kit, { actor: 'ann' })).length, 4, 'by ann')
    assertEqual((await records(kit, { actor: 'ann', action: 'cancel' })).length, 2, 'cancelled by ann')
    assertEqual((await records(kit, { tenant: 'a' })).length, 4, 'of a tenant')
    assertEqual((await records(kit, { tenant: '' })).length, 0, 'of no tenant')
    assertEqual(actions(await records(kit, { target: runs[1] ?? '' })), ['cancel', 'park'], 'of a run')
    const paged: unknown[] = []
    for (let cursor: AuditQuery['cursor']; ; ) {
      const page = await records(kit, { limit: 4, ...(cursor !== undefined && { cursor }) })
      paged.push(...page)
      const last = page.at(-1)
      if (last === undefined) break
      cursor = { at: last.at, id: last.id }
    }
    assertEqual(paged, all, 'all pages')
  },

  'old records are purged, so many at a time': async (kit) => {
    for (let index = 0; index < 3; index++) {
      const { id } = await kit.enqueue()
      await kit.storage.command({ ...commandOf('park', id), audit: noteOf(`${index}`) })
    }
    assertEqual(await kit.audit.purge({ olderThanMs: FAR_MS, limit: 10 }), 0, 'records of an hour ago')
    assertEqual(await kit.audit.purge({ olderThanMs: -FAR_MS, limit: 2 }), 2, 'records purged')
    assertEqual(actions(await records(kit)), ['2'], 'records left')
  },
})

export const AUDIT_CASES = [...OF_COMMANDS, ...OTHERS]

export const SETTING_CASES = casesOf('settings', 'settings', {
  'are what was set last': async (kit) => {
    assertEqual(await kit.settings.get(), {}, 'settings at first')
    assertEqual(await kit.settings.set({ a: '1', b: '{"x":[1]}' }), { a: '1', b: '{"x":[1]}' }, 'the answer')
    assertEqual(await kit.settings.set({ a: '2', c: '"text"', b: null }), { a: '2', c: '"text"' }, 'the next answer')
    assertEqual(await kit.settings.set({}), { a: '2', c: '"text"' }, 'after no change')
    await kit.reopen()
    assertEqual(await kit.settings.get(), { a: '2', c: '"text"' }, 'settings after a kill')
  },

  'a change by somebody leaves what it changed': async (kit) => {
    if (kit.storage.audit === undefined) return
    await kit.settings.set({ a: '1', b: '2' })
    const audit = noteOf('set')
    await kit.settings.set({ a: '5', b: null, c: '[true]' }, audit)
    const [record] = await records(kit)
    const of = { ...audit, tenant: '', targetKind: 'settings', target: '' } as const
    assertMatches(record ?? null, { ...of, before: { a: 1, b: 2 }, after: { a: 5, c: [true] } }, 'the record')
  },
})
