import { type Lead, LEADER, type NewMessage, type NewSchedule, type RunRecord } from '@coji/durably-core/storage'
import type { KyselyStorage } from '../src'
import { claim, claimWithin, COMPLETE, leaseOf, newCommit, newRun, newStep, RECOVER_ALL, startRun } from './builders'

/** One call of a storage, and what has to be there first. */
export interface Operation {
  readonly name: string
  /** Returns the call. */
  prepare(storage: KyselyStorage): Promise<() => Promise<unknown>>
}

const EVENT = { type: 'run:start', payload: '{}' } as const
const FAIL = { kind: 'fail', error: 'no', detail: { name: 'Error' }, events: [], eventsIfCancelled: [] } as const
const WAIT = { steps: ['nap'], wakesSeen: 0, wakesWanted: 1, restMs: 0 } as const
const SUSPEND = { kind: 'suspend', events: [], eventsIfCancelled: [], ...WAIT } as const
const noteOf = () => ({ id: crypto.randomUUID(), actor: 'ann', action: 'do' })
const SOON = '2999-01-01T00:00:00.000Z'
const LOG = { id: 'log', stepName: null, level: 'info', message: 'a', data: null, timestamp: SOON } as const
const LEAD = { name: 'schedules', workerId: 'w', ttlMs: 60_000 } as const
const HOUR = {
  ...{ hour: SOON, tenant: null, jobName: 'job', durations: {}, waits: {} },
  ...{ started: 1, completed: 1, failed: 0, timedOut: 0, cancelled: 0 },
} as const
const ANY_AGE = { olderThanMs: 86_400_000, limit: 100 } as const

function operation(name: string, prepare: Operation['prepare']): Operation {
  return { name, prepare }
}

/** What needs nothing to be there. */
function plain(name: string, act: (storage: KyselyStorage) => Promise<unknown>): Operation {
  return operation(name, async (storage) => () => act(storage))
}

/** What a leader does. */
function led(name: string, act: (storage: KyselyStorage, lead: Lead) => Promise<unknown>): Operation {
  return operation(name, async (storage) => {
    const lead = (await storage.cluster.lead(LEAD)) as Lead
    return () => act(storage, lead)
  })
}

/** About a run in the hands of a worker. */
function held(name: string, act: (storage: KyselyStorage, run: RunRecord) => Promise<unknown>): Operation {
  return operation(name, async (storage) => {
    const run = await startRun(storage, { parentRunId: 'parent', labels: { a: '1' } })
    return () => act(storage, run)
  })
}

/** About a run that has ended so. */
function ended(name: string, act: (storage: KyselyStorage, run: RunRecord) => Promise<unknown>): Operation {
  return operation(name, async (storage) => {
    const run = await startRun(storage)
    await storage.commit([newCommit(run, { outcome: FAIL, logs: [{ ...LOG, id: `log-${run.id}` }] })])
    return async () => act(storage, (await storage.getRun(run.id)) ?? run)
  })
}

/** About messages that were delivered. */
function delivered(name: string, act: (storage: KyselyStorage) => Promise<unknown>): Operation {
  return operation(name, async (storage) => {
    const { inbox, lead: take } = storage.cluster
    const lead = (await take(LEAD)) as Lead
    const { messages } = await inbox.waiting(100)
    const nothing = { wanted: 0, runs: [], gathered: [] }
    await inbox.deliver(
      lead,
      messages.map(({ id: messageId, round }) => ({ messageId, round, ...nothing })),
    )
    return () => act(storage)
  })
}

const schedule: NewSchedule = {
  ...{ id: 'schedule', tenant: '', name: 'nightly', source: null, jobName: 'other' },
  ...{ payload: null, definition: '{}', overlap: 'skip' },
}
const message: NewMessage = {
  ...{ id: 'message', tenant: '', type: 'x', payload: null, dedupeKey: 'key' },
  start: { afterMs: 0 },
}

const PARKED = { kind: 'park', reason: 'code changed', events: [EVENT] } as const
const FAIL_PARKED = { kind: 'failParked', error: 'no', detail: { name: 'Error' }, events: [EVENT] } as const

const OF_RUNS: readonly Operation[] = [
  plain('enqueue', (storage) => storage.enqueue([newRun({ jobName: 'x', labels: { a: '1' }, events: [EVENT] })])),
  plain('enqueue: with a key', (storage) => storage.enqueue([newRun({ jobName: 'x', idempotencyKey: 'key' })])),
  plain('enqueue: a key that may refuse', (storage) =>
    storage.enqueue([newRun({ jobName: 'x', idempotencyKey: 'other', onConflict: 'reject' })]),
  ),
  operation('claim', async (storage) => {
    await storage.enqueue([newRun(), newRun({ concurrencyKey: 'key' })])
    return () => claim(storage, 10)
  }),
  operation('claim: under limits', async (storage) => {
    await storage.enqueue([newRun()])
    return () => claimWithin(storage, { concurrency: 5, rateLimit: { max: 10, per: 1000 } })
  }),
  held('commit: a step', (storage, run) => storage.commit([newCommit(run, { steps: [newStep()], events: [EVENT] })])),
  held('commit: all there is', (storage, run) =>
    storage.commit([
      newCommit(run, {
        ...{ steps: [newStep({ child: newRun({ jobName: 'child', idempotencyKey: 'child' }) })], logs: [LOG] },
        ...{ children: [newRun({ jobName: 'child' })], progress: { current: 1 }, consumedSignals: [1] },
      }),
    ]),
  ),
  operation('commit: of many runs', async (storage) => {
    const runs = [await startRun(storage), await startRun(storage)]
    return () => storage.commit(runs.map((run) => newCommit(run, { steps: [newStep()], events: [EVENT] })))
  }),
  operation('commit: ends of plain runs', async (storage) => {
    const runs = [await startRun(storage), await startRun(storage)]
    return () => storage.commit(runs.map((run) => newCommit(run, { outcome: COMPLETE })))
  }),
  held('commit: suspend', (storage, run) => storage.commit([newCommit(run, { outcome: SUSPEND })])),
  held('renew', (storage, run) => storage.renew([leaseOf(run)], 60_000)),
  operation('recover', async (storage) => {
    const run = await startRun(storage)
    await storage.renew([leaseOf(run)], -1000)
    return () => storage.recover(RECOVER_ALL)
  }),
  held('cancel', (storage, { id: runId }) =>
    storage.command({ kind: 'cancel', runId, events: { cancelled: [EVENT], requested: [EVENT] } }),
  ),
  ended('retry', (storage, { id: runId }) => storage.command({ kind: 'retry', runId, events: [EVENT] })),
  ended('retry: by somebody', (storage, { id: runId }) =>
    storage.command({ kind: 'retry', runId, events: [], audit: noteOf() }),
  ),
  held('park', (storage, { id: runId }) => storage.command({ ...PARKED, runId })),
  held('unpark', (storage, { id: runId }) => storage.command({ kind: 'unpark', runId, events: [EVENT] })),
  held('failParked', (storage, { id: runId }) => storage.command({ ...FAIL_PARKED, runId })),
  ended('remove', (storage, { id: runId }) => storage.command({ kind: 'remove', runId })),
  ended('purge', (storage) => storage.purge({ statuses: ['failed'], limit: 100 })),
  ended('purge: of a job, beyond those to keep', (storage) =>
    storage.purge({ statuses: ['failed', 'completed'], jobNames: ['job'], olderThanMs: 1, keepNewest: 1, limit: 100 }),
  ),
  ended('purge: by somebody', (storage) => storage.purge({ statuses: ['failed'], limit: 100, audit: noteOf() })),
  held('signal', (storage, { id: runId }) =>
    storage.signals.send({ runId, name: 'go', payload: null, dedupeKey: 'once', events: [EVENT] }),
  ),
  held('signal: by somebody', (storage, { id: runId }) =>
    storage.signals.send({ runId, name: 'go', payload: null, dedupeKey: null, events: [], audit: noteOf() }),
  ),
  held('fork', (storage, { id: originId }) =>
    storage.forks.fork({
      run: newRun({ jobName: 'fork' }),
      originId,
      steps: [{ id: 'step', copyId: 'copy' }],
    }),
  ),
  held('fork: by somebody', (storage, { id: originId }) =>
    storage.forks.fork({
      run: newRun({ jobName: 'fork' }),
      audit: noteOf(),
      originId,
      steps: [{ id: 'step', copyId: 'copy' }],
    }),
  ),
]

const OF_READS: readonly Operation[] = [
  held('getRun', (storage, { id }) => storage.getRun(id, { tenant: '' })),
  plain('getRuns', (storage) => storage.getRuns({ limit: 10 })),
  plain('getRuns: by status, job and tenant', (storage) =>
    storage.getRuns({ statuses: ['failed'], jobNames: ['job'], tenant: 'acme', limit: 10 }),
  ),
  plain('getRuns: by label', (storage) => storage.getRuns({ labels: { a: '1' }, limit: 10 })),
  held('getSteps', (storage, { id }) => storage.getSteps(id)),
  plain('counts', (storage) => storage.counts({})),
  plain('nextDue', (storage) => storage.nextDue(['job'])),
  held('getEvents', (storage, { id }) => storage.events.getEvents(id, { after: 1, limit: 10 })),
  held('tail', (storage, { id }) => storage.events.tail([{ runId: id, after: 0 }], 10)),
  held('tail: of much', (storage, { id }) => storage.events.tail([{ runId: id, after: 0 }], 10_000)),
  held('getLogs', (storage, { id }) => storage.logs.getLogs(id, { limit: 10 })),
  held('getLogs: after one', (storage, { id }) => storage.logs.getLogs(id, { limit: 10, after: 'log' })),
  held('findLogs', (storage, { id: runId }) => storage.logs.findLogs([{ runId, id: 'log' }])),
  held('getUnread', (storage, { id }) => storage.signals.getUnread(id)),
]

const OF_GROUPS: readonly Operation[] = [
  plain('limits: load', (storage) => storage.limits.load({ jobName: 'job', concurrency: 1, rateLimit: null })),
  plain('limits: pause', (storage) => storage.limits.pause('paused')),
  plain('limits: pause by somebody', (storage) => storage.limits.pause('paused', noteOf())),
  plain('limits: resume', (storage) => storage.limits.resume('paused')),
  plain('limits: paused', (storage) => storage.limits.paused()),
  plain('debounce: enqueue', (storage) =>
    storage.debounce.enqueue({ run: newRun({ jobName: 'x' }), key: 'last', waitMs: 1000, maxWaitMs: 9000 }),
  ),
  plain('debounce: join', (storage) => {
    const run = newRun({ jobName: 'x', payload: '[1]' })
    return storage.debounce.join({ run, key: 'all', max: 10, maxBytes: 1000 })
  }),
  plain('archiving: findLogged', (storage) => storage.archiving.findLogged({ ...ANY_AGE, after: null })),
  plain('archiving: announce', (storage) => storage.archiving.announce('name')),
  ended('archiving: refer', (storage, { id: runId, version }) =>
    storage.archiving.refer({ runId, version, name: 'name' }),
  ),
  held('archiving: getUnarchived', (storage, { id }) =>
    storage.archiving.getUnarchived(id, { last: 'log', limit: 10 }),
  ),
  plain('archiving: removeArchived', (storage) =>
    storage.archiving.removeArchived({ runId: 'run', name: 'name', last: 'log', limit: 10 }),
  ),
  plain('archiving: giveUp', (storage) => storage.archiving.giveUp({ announcedForMs: 1000, limit: 10 })),
  plain('archiving: forget', (storage) => storage.archiving.forget(['name'])),
  plain('audit: list', (storage) => storage.audit.list({ actor: 'ann', cursor: { at: SOON, id: 'a' }, limit: 10 })),
  plain('audit: purge', (storage) => storage.audit.purge(ANY_AGE)),
  plain('statistics: ends', (storage) => storage.statistics.ends({ limit: 10, lagMs: 0 })),
  plain('statistics: fold', (storage) => {
    const to = { finishedAt: SOON, runId: 'run' }
    return storage.statistics.fold({ from: null, to, token: 'token', rows: [HOUR] })
  }),
  plain('statistics: hours', (storage) =>
    storage.statistics.hours({ tenant: null, jobName: null, from: SOON, before: SOON }),
  ),
  plain('statistics: forget', (storage) => storage.statistics.forget(SOON)),
  plain('settings: get', (storage) => storage.settings.get()),
  plain('settings: set by somebody', (storage) => storage.settings.set({ a: '1', b: null }, noteOf())),
]

const OF_CLUSTER: readonly Operation[] = [
  plain('cluster: getLead', (storage) => storage.cluster.getLead(LEAD.name)),
  plain('cluster: lead', (storage) => storage.cluster.lead(LEAD)),
  plain('schedules: create', (storage) => storage.cluster.schedules.create([schedule])),
  plain('schedules: change', (storage) =>
    storage.cluster.schedules.change({ tenant: '', name: 'nightly', pausedBecause: null, isAnew: true }),
  ),
  plain('schedules: get', (storage) => storage.cluster.schedules.get({ tenant: '', name: 'nightly' })),
  plain('schedules: list', (storage) => storage.cluster.schedules.list({ tenant: '', limit: 10 })),
  plain('schedules: list, a page of a tenant with labels', (storage) =>
    storage.cluster.schedules.list({
      ...{ tenant: '', labels: { team: 'red' } },
      ...{ after: { tenant: '', name: 'a' }, limit: 10 },
    }),
  ),
  plain('schedules: list, with labels', (storage) =>
    storage.cluster.schedules.list({ labels: { team: 'red' }, isPaused: false, isEnded: true }),
  ),
  plain('schedules: due', (storage) => storage.cluster.schedules.due(10)),
  operation('schedules: fire', async (storage) => {
    const lead = await storage.cluster.lead(LEAD)
    const runs = [newRun({ jobName: 'other', scheduleId: 'schedule', scheduledFor: SOON })]
    const firing = { scheduleId: 'schedule', version: 2, runs, firedUntil: SOON, nextAt: SOON, missed: 0, ends: [] }
    return async () => (lead === null ? null : storage.cluster.schedules.fire(lead, [firing]))
  }),
  operation('schedules: fire, and have a run end', async (storage) => {
    const lead = (await storage.cluster.lead(LEAD)) as Lead
    const waits = newRun({ jobName: 'other', scheduleId: 'schedule' })
    await storage.enqueue([waits])
    const firing = { scheduleId: 'schedule', version: 3, runs: [], firedUntil: SOON, nextAt: SOON, missed: 0 }
    const ending = { cancelled: [EVENT], requested: [EVENT] }
    return () => storage.cluster.schedules.fire(lead, [{ ...firing, ends: [waits.id] }], ending)
  }),
  plain('schedules: remove', (storage) => storage.cluster.schedules.remove({ tenant: '', name: 'nightly' })),
  led('schedules: purge', (storage, lead) => storage.cluster.schedules.purge(lead, ANY_AGE)),
  plain('schedules: create, by somebody', (storage) => storage.cluster.schedules.create([schedule], noteOf())),
  plain('schedules: change, by somebody', (storage) =>
    storage.cluster.schedules.change({ tenant: '', name: 'nightly', isAnew: false, audit: noteOf() }),
  ),
  plain('schedules: start by hand', (storage) =>
    storage.cluster.schedules.startByHand({ scheduleId: 'S', runs: [newRun({ scheduleId: 'S' })], audit: noteOf() }),
  ),
  plain('schedules: remove, by somebody', (storage) =>
    storage.cluster.schedules.remove({ tenant: '', name: 'nightly' }, noteOf()),
  ),
  plain('inbox: publish', (storage) => storage.cluster.inbox.publish([message])),
  plain('inbox: subscribe', (storage) =>
    storage.cluster.inbox.subscribe(['job'], [{ jobName: 'job', type: 'x', definition: '{}' }]),
  ),
  plain('inbox: waiting', (storage) => storage.cluster.inbox.waiting(10)),
  led('inbox: deliver', (storage, lead) => {
    const runs = [newRun({ jobName: 'other' })]
    const gathered = [{ jobName: 'job', key: '', mode: 'last', waitMs: -1000, max: 0 } as const]
    return storage.cluster.inbox.deliver(lead, [{ messageId: 'message', round: 0, wanted: 2, runs, gathered }])
  }),
  plain('inbox: ripe', (storage) => storage.cluster.inbox.ripe(10)),
  led('inbox: release', (storage, lead) =>
    storage.cluster.inbox.release(lead, [{ members: ['message 0 job'], run: newRun({ jobName: 'other' }) }]),
  ),
  plain('inbox: list', (storage) => storage.cluster.inbox.list({ limit: 10 })),
  plain('inbox: counts', (storage) => storage.cluster.inbox.counts({})),
  delivered('inbox: replay', (storage) => storage.cluster.inbox.replay({ query: {}, limit: 100 })),
  delivered('inbox: replay, by somebody', (storage) =>
    storage.cluster.inbox.replay({ query: { types: ['x'] }, limit: 100, audit: noteOf() }),
  ),
  plain('inbox: purge', (storage) => storage.cluster.inbox.purge(null, ANY_AGE)),
  led('inbox: purge, by the leader', (storage, lead) => storage.cluster.inbox.purge(lead, ANY_AGE)),
  plain('inbox: purge, by somebody', (storage) => storage.cluster.inbox.purge(null, { ...ANY_AGE, audit: noteOf() })),
  plain('inbox: forget', (storage) => storage.cluster.inbox.forget('job')),
  plain('inbox: forget, by somebody', (storage) => storage.cluster.inbox.forget('job', noteOf())),
  operation('cluster: resign', async (storage) => {
    const lead = await storage.cluster.lead(LEAD)
    return async () => (lead === null ? null : storage.cluster.resign(lead))
  }),
]

const BEAT = {
  ...{ workerId: 'w', presence: 'active' as const, capacity: 1, placedJobs: ['placed'] },
  ...{ labels: {}, codeVersion: null, ttlMs: 60_000 },
} as const
const OVERDUE = { reassignAfterMs: 0, livingAfterMs: 0, limit: 10, events: [EVENT] } as const
const WAITING = { jobs: ['placed'], suspectsOf: ['placed'], from: [], tenants: 10, limitEach: 10 } as const

/** About a run that a leader places, and its lead. */
function placed(
  name: string,
  act: (storage: KyselyStorage, run: RunRecord, lead: Lead) => Promise<unknown>,
): Operation {
  return operation(name, async (storage) => {
    const wanted = newRun({ jobName: 'placed', concurrencyKey: `key ${name}` })
    await storage.enqueue([wanted])
    const run = (await storage.getRun(wanted.id)) as RunRecord
    const lead = (await storage.cluster.lead({ ...LEAD, name: LEADER })) as Lead
    return () => act(storage, run, lead)
  })
}

/** About a run that is assigned to a worker. */
function assigned(name: string, act: Parameters<typeof placed>[1]): Operation {
  return operation(name, async (storage) => {
    const { prepare } = placed(name, async (_storage, run, lead) => {
      await storage.cluster.placement.assign(lead, [assignmentOf(run)])
      return { run: await storage.getRun(run.id), lead }
    })
    const { run, lead } = (await (await prepare(storage))()) as { run: RunRecord; lead: Lead }
    return () => act(storage, run, lead)
  })
}

const assignmentOf = ({ id: runId, version }: RunRecord) => ({ runId, version, workerId: 'w', events: [EVENT] })
const seen = ({ id: runId, version }: RunRecord) => ({ workerId: 'w', runs: [{ runId, version }], events: [EVENT] })

const OF_PLACEMENT: readonly Operation[] = [
  plain('placement: beat', (storage) => storage.cluster.placement.beat(BEAT)),
  plain('placement: noteJobs', (storage) =>
    storage.cluster.placement.noteJobs('1', [{ name: 'placed', version: '', options: '{}' }]),
  ),
  plain('placement: getWorkers', (storage) => storage.cluster.placement.getWorkers()),
  plain('placement: getJobs', (storage) => storage.cluster.placement.getJobs()),
  plain('placement: waiting', (storage) => storage.cluster.placement.waiting(WAITING)),
  placed('placement: assign', (storage, run, lead) => storage.cluster.placement.assign(lead, [assignmentOf(run)])),
  plain('placement: assigned', (storage) => storage.cluster.placement.assigned('w', 10)),
  assigned('placement: start', (storage, run) =>
    storage.cluster.placement.start({ ...seen(run), claimToken: 'token', leaseMs: 60_000 }),
  ),
  assigned('placement: decline', (storage, run) => storage.cluster.placement.decline(seen(run))),
  assigned('placement: orphan', (storage, _run, lead) => storage.cluster.placement.orphan({ lead, ...OVERDUE })),
  plain('placement: free', (storage) => storage.cluster.placement.free(10)),
  led('placement: forgetWorkers', (storage, lead) => storage.cluster.placement.forgetWorkers(lead, 0)),
]

/** In an order in which each finds what it needs. */
export const EVERY_OPERATION: readonly Operation[] = [
  ...OF_RUNS,
  ...OF_READS,
  ...OF_GROUPS,
  ...OF_CLUSTER,
  ...OF_PLACEMENT,
]
