import type { NewRun, RunCommit, RunRecord } from '@coji/durably-core/storage'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import type { KyselyStorage } from '../../src'
import { claimWithin, COMPLETE, leaseOf, newCommit, newRun, newStep, RECOVER_ALL } from '../builders'
import { type ExplainBench, explainBench, type Explained } from './explain'

const FINISHED = scaled({ quick: 100_000, full: 1_000_000 })
/** Those of `plans.txt`: of more the planner chooses otherwise here and there, as of another sample. */
const FINISHED_WHERE_REVIEWED = 100_000
const WAITING = 20_000
const BLOCKED = 50_000
const DUE = 1000

/** What a plan must cost for Postgres to compile it, if nobody has set it lower. */
const JIT_ABOVE_COST = 100_000

const LIMITS = { concurrency: 50, rateLimit: { max: 1000, per: 60_000 } } as const

const EVENT = { type: 'step:complete', payload: '{}' }

function claimOf(limit: number, change: object = {}) {
  const params = { workerId: 'worker', claimToken: 'token', jobs: ['job'], limit, leaseMs: 60_000, events: [EVENT] }
  return (storage: KyselyStorage) => storage.claim({ ...params, holdsSuspect: false, ...change })
}

/** Rows as the storage would have written them, faster. */
interface Rows {
  readonly prefix: string
  readonly count: number
  /** Column by column; `i` counts. */
  readonly columns: Readonly<Record<string, string>>
}

function insert({ prefix, count, columns }: Rows): string {
  const all = {
    id: `'${prefix}' || lpad(i::text, 24, '0')`,
    job_name: `'job'`,
    payload: `'{"a":1}'`,
    created_at: `now() - interval '1 day' + i * interval '1 ms'`,
    updated_at: 'now()',
    ...columns,
  }
  return `insert into durably_runs (${Object.keys(all).join()}) select ${Object.values(all).join()} from generate_series(1, ${count}) as i`
}

const finishedRuns = (count: number) =>
  insert({
    prefix: 'F',
    count,
    columns: {
      tenant: `case when i % 10 = 0 then 'acme' else '' end`,
      status: `(array['completed', 'failed', 'cancelled'])[1 + i % 3]`,
      concurrency_key: `case when i % 10 = 0 then 'key' || i % 100 end`,
      parent_run_id: `case when i % 5 = 0 then 'F' || lpad((i - 1)::text, 24, '0') end`,
      available_at: `now() - interval '1 day'`,
      started_at: 'now()',
      finished_at: `now() - i * interval '1 second'`,
    },
  })

const finished = finishedRuns(FINISHED)

const timedOut = insert({
  prefix: 'T',
  count: 2000,
  columns: {
    tenant: `'acme'`,
    status: `'timed_out'`,
    available_at: 'now()',
    started_at: 'now()',
    finished_at: 'now()',
  },
})

/** Of a job of their own. */
const rare = insert({
  prefix: 'Q',
  count: 20,
  columns: {
    tenant: `'acme'`,
    job_name: `'rare'`,
    status: `'completed'`,
    available_at: `now() - interval '2 days'`,
    started_at: `now() - interval '2 days'`,
    finished_at: `now() - interval '2 days' + i * interval '1 second'`,
  },
})

const dueRuns = (prefix: string, count: number) =>
  insert({
    prefix,
    count,
    columns: { status: `'pending'`, available_at: `now() - interval '1 hour' + i * interval '1 ms'` },
  })

const due = dueRuns('P', DUE)

const waiting = insert({
  prefix: 'W',
  count: WAITING,
  columns: {
    status: `'pending'`,
    available_at: `case when i % 2 = 0 then now() + interval '1 hour' + i * interval '1 ms' end`,
  },
})

const blocked = insert({
  prefix: 'B',
  count: BLOCKED,
  columns: {
    status: `'pending'`,
    concurrency_key: `'hot'`,
    available_at: `now() - interval '2 hours' + i * interval '1 ms'`,
  },
})

const holder = insert({
  prefix: 'H',
  count: 1,
  columns: {
    status: `'running'`,
    concurrency_key: `'hot'`,
    concurrency_slot: '0',
    lease_until: `now() + interval '1 day'`,
    available_at: 'now()',
  },
})

const running = insert({
  prefix: 'R',
  count: 20_000,
  columns: {
    status: `'running'`,
    owner_id: `'other'`,
    claim_token: `'other' || i`,
    lease_until: `now() + interval '1 day'`,
    available_at: 'now()',
  },
})

/** Of many workers. */
const assigned = insert({
  prefix: 'A',
  count: 5000,
  columns: {
    status: `'assigned'`,
    assigned_worker_id: `'worker ' || i % 500`,
    assigned_at: 'now()',
    leader_epoch: '1',
    available_at: 'now()',
  },
})

const debounced = `insert into durably_debounced_runs (tenant, job_name, key, run_id)
  select '', 'job', 'key ' || i, 'D' || i from generate_series(1, 20000) as i`

/** Every tenth of the finished runs. */
const SOME = `where id like 'F%0'`

const steps = `insert into durably_steps (id, run_id, name, "index", kind, status, attempt, lease_epoch, claim_token, started_at)
  select id, id, 'step', 0, 'run', 'completed', 1, 1, 'token', now() from durably_runs ${SOME}`

const events = `insert into durably_run_events (run_id, seq, event_type, payload, created_at)
  select id, 1, 'run:trigger', '{}', now() from durably_runs ${SOME}`

const logs = `insert into durably_logs (id, run_id, level, message, timestamp) select id, id, 'info', 'text', now() from durably_runs ${SOME}`

/** A run with a log of the same id. */
const LOGGED = `F${'10'.padStart(24, '0')}`

const archived = `update durably_runs set log_ref = 'name' where id = '${LOGGED}'`

const signals = `insert into durably_signals (run_id, position, name, created_at) select id, 1, 'go', now() from durably_runs ${SOME}`

const starts = `insert into durably_job_starts (job_name, nth, started_at)
  select 'job', i, now() - interval '1 hour' from generate_series(1, 10000) as i`

const schedules = `insert into durably_schedules (id, tenant, name, job_name, definition, overlap, fired_until, next_at, due_at,
    created_at, updated_at)
  select 'S' || i, '', 'schedule ' || i, 'job', '{}', 'skip', now(), d, d, now(), now()
  from generate_series(1, 20000) as i, lateral (select now() + (i - 50) * interval '1 minute' as d) as due`

const inbox = `insert into durably_inbox (id, tenant, type, dedupe_key, available_at, created_at, processed_at)
  select 'M' || i, '', 'x', 'key ' || i, now(), now() - i * interval '1 minute',
    case when i > 50 then now() - i * interval '1 minute' end
  from generate_series(1, 20000) as i`

const labels = `insert into durably_run_labels (run_id, name, value) select id, 'customer', right(id, 3) from durably_runs ${SOME}`

/** `vacuum` as autovacuum will have done it by the time there are so many. */
async function benchWith(...statements: readonly string[]): Promise<ExplainBench> {
  const bench = await explainBench()
  for (const statement of statements) await bench.execute(statement)
  await bench.execute('vacuum analyze')
  return bench
}

/** A run that is due has a key: from now on claims of this storage begin with the keys. Claims one. */
async function meetKeys({ storage }: ExplainBench): Promise<string | undefined> {
  const [run] = await claimOf(1)(storage)
  return run?.id
}

describe('what a claim costs', () => {
  it('is the same buffers with many finished runs as with none', async () => {
    const empty = await benchWith(due)
    const full = await benchWith(finished, due)
    const [few, many] = [await empty.explain(claimOf(1)), await full.explain(claimOf(1))]
    reportSuite({
      suite: 'claim beside finished runs',
      finished: FINISHED,
      buffers: many.buffers,
      'with none': few.buffers,
    })
    await empty.close()
    await full.close()
    // Indexes of many runs have a level more, and pages that are half full.
    expect(Math.abs(many.buffers - few.buffers)).toBeLessThanOrEqual(12)
  })

  it('is not twice as much beside runs that wait, or that one key blocks', async () => {
    const bench = await benchWith(due)
    const alone = await buffersOf(bench)
    await bench.execute(waiting)
    await bench.execute('vacuum analyze')
    const besideWaiting = await buffersOf(bench)
    await bench.execute(blocked)
    await bench.execute(holder)
    await bench.execute('vacuum analyze')
    await meetKeys(bench)
    const besideBlocked = await buffersOf(bench)
    const claimed = await claimOf(10)(bench.storage)
    await bench.close()
    reportSuite({
      suite: 'claim beside others',
      'buffers alone': alone,
      [`with ${WAITING} waiting`]: besideWaiting,
      [`with ${BLOCKED} blocked as well`]: besideBlocked,
    })
    expect(claimed.map(({ id }) => id[0])).toEqual(Array.from({ length: 10 }, () => 'P'))
    expect(besideWaiting).toBeLessThan(alone * 2)
    expect(besideBlocked).toBeLessThan(alone * 2)
  })
})

const KEYS = 1000

/** Four runs of each of many keys, one of which runs elsewhere. */
const keyed = insert({
  prefix: 'K',
  count: 4 * KEYS,
  columns: {
    status: `case when i % 4 = 0 then 'running' else 'pending' end`,
    concurrency_key: `'many' || (i / 4)`,
    concurrency_slot: `case when i % 4 = 0 then 0 end`,
    lease_until: `case when i % 4 = 0 then now() + interval '1 day' end`,
    available_at: `now() - interval '3 hours' + i * interval '1 ms'`,
  },
})

/** Two runs of each of so many keys. */
const manyKeys = (count: number) =>
  insert({
    prefix: `${count}`,
    count: 2 * count,
    columns: {
      status: `'pending'`,
      concurrency_key: `'key ${count} ' || (i / 2)`,
      available_at: `now() - interval '1 hour' + i * interval '1 ms'`,
    },
  })

describe('what a claim costs', () => {
  it('is bounded behind a busy key, however many keys wait, busy themselves or not', async () => {
    const bench = await benchWith(blocked, holder, manyKeys(50))
    const first = await meetKeys(bench)
    const few = await buffersOf(bench)
    await bench.execute(manyKeys(5000))
    await bench.execute('vacuum analyze')
    const many = await buffersOf(bench)
    const { ms } = await bench.explain(claimOf(10))
    const claimed = new Set([first, ...(await claimOf(10)(bench.storage)).map(({ id }) => id)])
    for (let n = 0; n < 4; n++) for (const { id } of await claimOf(10)(bench.storage)) claimed.add(id)
    await bench.close()
    reportSuite({
      suite: 'claim behind a busy key',
      'buffers with 50 keys': few,
      'with 5,000': many,
      ms: ms.toFixed(1),
    })
    expect(claimed.size).toBe(51)
    expect(many).toBeLessThan(few * 2)
  })

  it('does not depend on how much waits in a new table, of which there are no statistics yet', async () => {
    const bench = await explainBench()
    await bench.execute('alter table durably_runs set (autovacuum_enabled = off)')
    await bench.execute(due)
    const few = await bench.explain(claimOf(100))
    await bench.execute(dueRuns('Q', 20 * DUE))
    const many = await bench.explain(claimOf(100))
    await bench.close()
    reportSuite({ suite: 'claim without statistics', due: DUE, buffers: few.buffers, 'of more': many.buffers })
    expect(many.buffers).toBeLessThan(few.buffers * 1.2)
  })

  it('does not depend on statistics, which lag behind a queue that fills', async () => {
    const bench = await benchWith(finished)
    for (const statement of [due, keyed, blocked, waiting]) await bench.execute(statement)
    await meetKeys(bench)
    const stale = await bench.explain(claimOf(10))
    await bench.execute('analyze')
    const fresh = await bench.explain(claimOf(10))
    await bench.close()
    reportSuite({ suite: 'claim with old statistics', buffers: stale.buffers, 'with new ones': fresh.buffers })
    expect(stale.buffers).toBeLessThan(fresh.buffers * 1.5)
    expect(Math.max(stale.cost, fresh.cost)).toBeLessThan(JIT_ABOVE_COST)
  })
})

const OF_SCHEDULES = 10

/** One run of each of some schedules. */
const ofSchedules = insert({
  prefix: 'S',
  count: OF_SCHEDULES,
  columns: { status: `'pending'`, schedule_id: `'S' || i`, available_at: 'now()' },
})

function makeWay(storage: KyselyStorage) {
  const firings = Array.from({ length: OF_SCHEDULES }, (_, n) => ({
    ...firingOf(`S${n + 1}`),
    ends: [`S${String(n + 1).padStart(24, '0')}`],
  }))
  return storage.cluster.schedules.fire(LEAD, firings, ENDING)
}

describe('runs that end', () => {
  it('are looked up one by one in a table of a few thousand, of which a planner would rather read all', async () => {
    const bench = await explainBench()
    await bench.execute('alter table durably_runs set (autovacuum_enabled = off)')
    await bench.execute(dueRuns('P', 5 * DUE))
    const held = await claimOf(64)(bench.storage)
    const { accesses } = await bench.explain((storage) =>
      storage.commit(held.map((run) => newCommit(run, { steps: [stepOf(run, 'only')], outcome: COMPLETE }))),
    )
    await bench.close()
    expect(held).toHaveLength(64)
    expect(accesses.filter((access) => access === 'Seq Scan durably_runs')).toEqual([])
  })
})

describe('runs that make way', () => {
  it.each(['no statistics', 'statistics of before'])(
    'are looked up by their ids alone beside many others, with %s',
    async (which) => {
      const bench = await explainBench()
      for (const statement of [schedules, ofSchedules, LEADER]) await bench.execute(statement)
      if (which !== 'no statistics') await bench.execute('analyze')
      for (const statement of [due, waiting, running]) await bench.execute(statement)
      const { indexes } = await bench.explain(makeWay)
      await bench.close()
      expect([...indexes].filter((name) => name.startsWith('durably_runs_'))).toEqual(['durably_runs_pkey'])
    },
  )
})

function stepOf(run: RunRecord, name: string) {
  return newStep({ id: `${run.id}-${name}`, name })
}

/** Once it has looked there before: the first look also leaves hints behind. */
async function buffersOf(bench: ExplainBench): Promise<number> {
  await bench.explain(claimOf(10))
  return (await bench.explain(claimOf(10))).buffers
}

/** Of runs in hand and runs of the job there are as few here: the sample of the statistics decides. */
const IN_HAND = /^(Index Scan durably_runs_(job_created|running|assigned|orphaned)|Bitmap Heap Scan durably_runs)$/
const EITHER = 'Runs in hand by their status, or those of the job'

/** As a rule they have few rows or none. */
const SMALL = /Seq Scan durably_(paused_jobs|leaders|subscriptions|archive_strays|settings|workers)/g

const NOTE = { id: 'N', actor: 'ann', action: 'retry' } as const

/** Of what operators did. */
const audit = `insert into durably_audit (id, at, tenant, actor, action, target_kind, target)
  select 'A' || i, now() - (20000 - i) * interval '1 minute', '', 'ann', 'retry', 'run', 'run ' || (i / 2)
  from generate_series(1, 20000) as i`

const OF_FEW_RUNS = 250

const LEAD = { name: 'schedules', workerId: 'w', epoch: 1 } as const

const LEADER = `insert into durably_leaders (name, worker_id, epoch, lead_until)
  values ('schedules', 'w', 1, now() + interval '1 day')`

const ENDING = { cancelled: [EVENT], requested: [EVENT] } as const
const ASSIGNMENT = { runId: `P${'1'.padStart(24, '0')}`, version: 1, workerId: 'worker', events: [EVENT] } as const
const ASSIGNED = { workerId: 'worker', runs: [ASSIGNMENT], events: [EVENT] } as const
const SOON = '2999-01-01T00:00:00.000Z'
const MESSAGE = {
  ...{ id: 'M-new', tenant: '', type: 'x', payload: null, dedupeKey: 'key 7' },
  start: { afterMs: 0 },
} as const

function firingOf(scheduleId: string) {
  const run = newRun({ scheduleId, scheduledFor: SOON })
  return { scheduleId, version: 1, runs: [run], firedUntil: SOON, nextAt: SOON, missed: 0, ends: [] }
}

function deliveryOf(messageId: string) {
  return { messageId, round: 0, wanted: 1, runs: [newRun()], gathered: [] }
}

describe('plans', () => {
  let bench: ExplainBench
  let held: readonly RunRecord[]

  beforeAll(async () => {
    bench = await benchWith(
      finishedRuns(FINISHED_WHERE_REVIEWED),
      timedOut,
      rare,
      due,
      waiting,
      blocked,
      holder,
      running,
      assigned,
      debounced,
      labels,
      steps,
      logs,
      archived,
      events,
      signals,
      starts,
      schedules,
      inbox,
      audit,
    )
    held = await claimOf(10)(bench.storage)
    await bench.storage.commit(held.map((run) => newCommit(run, { steps: [stepOf(run, 'first')], events: [EVENT] })))
    await bench.execute('analyze')
  })

  afterAll(() => bench.close())

  const next = (changeOf: (run: RunRecord) => Partial<RunCommit>) => (storage: KyselyStorage) =>
    storage.commit(held.map((run) => newCommit(run, { commitNo: 2, events: [EVENT], ...changeOf(run) })))

  const STATEMENTS: Readonly<Record<string, (storage: KyselyStorage) => Promise<unknown>>> = {
    enqueue: (storage) => storage.enqueue([newRun({ labels: { customer: 'a' }, events: [EVENT] })]),
    'enqueue with a key': (storage) => storage.enqueue([newRun({ idempotencyKey: 'key' } satisfies Partial<NewRun>)]),
    claim: claimOf(10),
    'claim under limits': (storage) => claimWithin(storage, LIMITS, 10),
    'commit of steps': next((run) => ({ steps: [stepOf(run, 'second')] })),
    'commit that ends runs': next(() => ({ outcome: COMPLETE })),
    renew: (storage) => storage.renew(held.map(leaseOf), 60_000),
    'look for expired leases': (storage) => storage.recover(RECOVER_ALL),
    'next due': (storage) => storage.nextDue(['job']),
    'get a run': (storage) => storage.getRun(held[0]?.id ?? ''),
    'get its steps': (storage) => storage.getSteps(held[0]?.id ?? ''),
    'newest runs': (storage) => storage.getRuns({ limit: 100 }),
    'newest runs of a status': (storage) => storage.getRuns({ statuses: ['timed_out'], limit: 100 }),
    'newest runs of a tenant': (storage) => storage.getRuns({ tenant: 'acme', limit: 100 }),
    'newest runs of a status of a tenant': (storage) =>
      storage.getRuns({ tenant: 'acme', statuses: ['completed'], limit: 100 }),
    'newest runs of no tenant': (storage) => storage.getRuns({ tenant: '', limit: 100 }),
    'newest runs of a job': (storage) => storage.getRuns({ jobNames: ['other'], limit: 100 }),
    'newest runs of a job of a tenant': (storage) =>
      storage.getRuns({ tenant: 'acme', jobNames: ['other'], limit: 100 }),
    'runs with a code': (storage) => storage.getRuns({ errorCode: 'E_PAY', limit: 100 }),
    'runs of a tenant with a label': (storage) =>
      storage.getRuns({ tenant: '', labels: { customer: '120' }, limit: 100 }),
    'counts of runs': (storage) => storage.counts({}),
    'runs with a label': (storage) => storage.getRuns({ labels: { customer: '120' }, limit: 100 }),
    purge: (storage) => storage.purge({ statuses: ['completed'], olderThanMs: 86_400_000, limit: 100 }),
    'purge of a job': (storage) =>
      storage.purge({ statuses: ['completed'], jobNames: ['rare'], olderThanMs: 86_400_000, limit: 100 }),
    'purge of a job, beyond those to keep': (storage) =>
      storage.purge({ statuses: ['completed'], jobNames: ['rare'], keepNewest: 10, limit: 100 }),
    'counts of a job': (storage) => storage.counts({ jobNames: ['rare'] }),
    'counts of a job of a tenant': (storage) => storage.counts({ tenant: 'acme', jobNames: ['rare'] }),
    'logs of a run': (storage) => storage.logs.getLogs(held[0]?.id ?? '', { limit: 100 }),
    'tail events': (storage) =>
      storage.events.tail(
        held.map(({ id }) => ({ runId: id, after: 0 })),
        100,
      ),
    'unread signals': (storage) => storage.signals.getUnread(held[0]?.id ?? ''),
    signal: (storage) =>
      storage.signals.send({ runId: held[0]?.id ?? '', name: 'go', payload: null, dedupeKey: 'once', events: [EVENT] }),
    'due schedules': (storage) => storage.cluster.schedules.due(100),
    'a schedule by its name': (storage) => storage.cluster.schedules.get({ tenant: '', name: 'schedule 7' }),
    'schedules, a page': (storage) => storage.cluster.schedules.list({ tenant: '', limit: 100 }),
    'fire schedules': (storage) => storage.cluster.schedules.fire(LEAD, ['S1', 'S2'].map(firingOf)),
    'fire a schedule that has a run end': (storage) =>
      storage.cluster.schedules.fire(LEAD, [{ ...firingOf('S3'), ends: [held[0]?.id ?? ''] }], ENDING),
    'waiting messages': (storage) => storage.cluster.inbox.waiting(100),
    'publish with a dedupe key': (storage) => storage.cluster.inbox.publish([MESSAGE]),
    'deliver messages': (storage) => storage.cluster.inbox.deliver(LEAD, ['M1', 'M2'].map(deliveryOf)),
    'a trigger that is put off': (storage) =>
      storage.debounce.enqueue({ run: newRun(), key: 'key 7', waitMs: 1000, maxWaitMs: 60_000 }),
    'a trigger that joins a list': (storage) =>
      storage.debounce.join({ run: newRun({ payload: '[1]' }), key: 'key 7', max: 9, maxBytes: 1000 }),
    'messages, a page': (storage) => storage.cluster.inbox.list({ limit: 100 }),
    'purge of messages': (storage) => storage.cluster.inbox.purge(null, { olderThanMs: 86_400_000, limit: 100 }),
    'purge of messages by the leader': (storage) =>
      storage.cluster.inbox.purge(LEAD, { olderThanMs: 86_400_000, limit: 100 }),
    'purge of messages by somebody': (storage) =>
      storage.cluster.inbox.purge(null, { olderThanMs: 86_400_000, limit: 100, audit: NOTE }),
    'logs of a run after one': (storage) => storage.logs.getLogs(LOGGED, { after: LOGGED, limit: 100 }),
    'ended runs with logs': (storage) =>
      storage.archiving.findLogged({ olderThanMs: 86_400_000, after: null, limit: 100 }),
    'a run refers to the archive': (storage) =>
      storage.archiving.refer({ runId: 'F'.padEnd(25, '0').concat('4'), version: 1, name: 'name' }),
    'logs that are not in the archive': (storage) =>
      storage.archiving.getUnarchived(LOGGED, { last: LOGGED, limit: 100 }),
    'logs that leave for the archive': (storage) =>
      storage.archiving.removeArchived({ runId: LOGGED, name: 'name', last: LOGGED, limit: 100 }),
    'audit, a page': (storage) => storage.audit.list({ limit: 100 }),
    'audit of a run': (storage) => storage.audit.list({ target: 'run 7', limit: 100 }),
    'purge of the audit': (storage) => storage.audit.purge({ olderThanMs: 86_400_000, limit: 100 }),
    'retry by somebody': (storage) =>
      storage.command({ kind: 'retry', runId: held[0]?.id ?? '', events: [], audit: NOTE }),
    'runs that wait for a place': (storage) =>
      storage.cluster.placement.waiting({ jobs: ['job'], suspectsOf: ['job'], from: [], tenants: 10, limitEach: 10 }),
    'runs assigned to a worker': (storage) => storage.cluster.placement.assigned('worker', 10),
    'assign runs': (storage) => storage.cluster.placement.assign(LEAD, [ASSIGNMENT]),
    'start runs': (storage) => storage.cluster.placement.start({ ...ASSIGNED, claimToken: 'token', leaseMs: 60_000 }),
    'look for overdue assignments': (storage) =>
      storage.cluster.placement.orphan({ lead: null, reassignAfterMs: 0, livingAfterMs: 0, limit: 100, events: [] }),
    'free orphaned runs': (storage) => storage.cluster.placement.free(100),
    'what workers hold': (storage) => storage.cluster.placement.getWorkers(),
    cancel: (storage) =>
      storage.command({ kind: 'cancel', runId: held[0]?.id ?? '', events: { cancelled: [EVENT], requested: [EVENT] } }),
  }

  it.each(['purge of a job', 'purge of a job, beyond those to keep', 'counts of a job', 'counts of a job of a tenant'])(
    '%s passes no runs of others',
    async (name) => {
      const { buffers } = await bench.explain(STATEMENTS[name] as (storage: KyselyStorage) => Promise<unknown>)
      // A few of each of its twenty runs, however many others have ended.
      expect(buffers).toBeLessThan(OF_FEW_RUNS)
    },
  )

  /** They look for a way to the runs before they go it. */
  const SEARCHES: typeof STATEMENTS = {
    'find parked runs': (storage) => storage.getRuns({ parked: true, limit: 100 }),
    'find parked runs of a job': (storage) => storage.getRuns({ parked: true, jobNames: ['job'], limit: 100 }),
    'find parked runs of a tenant': (storage) => storage.getRuns({ parked: true, tenant: 'acme', limit: 100 }),
    'timed-out runs of a job': (storage) =>
      storage.getRuns({ statuses: ['timed_out'], jobNames: ['other'], limit: 100 }),
    'runs that wait for a signal': (storage) => storage.getRuns({ waitsForKinds: ['signal'], limit: 100 }),
    'messages that are sent out anew': (storage) =>
      storage.cluster.inbox.replay({ query: { types: ['none'] }, limit: 100 }),
    'children of a run': (storage) => storage.getRuns({ parentRunId: 'F'.padEnd(25, '0').concat('4'), limit: 100 }),
  }

  async function explained(): Promise<readonly (readonly [string, Explained])[]> {
    const plans: [string, Explained][] = []
    for (const [name, act] of Object.entries(STATEMENTS)) plans.push([name, await bench.explain(act)])
    for (const [name, act] of Object.entries(SEARCHES)) {
      const each = await bench.explainReads(act)
      plans.push(...each.map((plan, index) => [`${name}, ${index + 1}`, plan] satisfies [string, Explained]))
    }
    return plans
  }

  it('are those that were reviewed, without a sequential scan', async () => {
    const plans = await explained()
    const text = plans.map(([name, { accesses }]) => {
      const ways =
        name === 'counts of a job' ? new Set(accesses.map((access) => access.replace(IN_HAND, EITHER))) : accesses
      return `${name}\n${[...ways].map((way) => `  ${way}\n`).join('')}`
    })
    expect(text.join('\n').replaceAll(SMALL, '')).not.toContain('Seq Scan')
    const [dearest] = plans
      .map(([name, { cost }]) => ({ name, cost: Math.round(cost) }))
      .sort((a, b) => b.cost - a.cost)
    reportSuite({ suite: 'plans', dearest: dearest?.name ?? '', cost: dearest?.cost ?? 0, 'jit from': JIT_ABOVE_COST })
    // Compiling a plan takes longer than all of these take.
    expect(dearest?.cost).toBeLessThan(JIT_ABOVE_COST)
    await expect(text.join('\n')).toMatchFileSnapshot('./plans.txt')
  })

  /** Those that no statement reads by, and what they are for. */
  const OTHERWISE: Readonly<Record<string, string>> = {
    durably_steps_pkey: 'keeps an id to one step',
    durably_paused_jobs_pkey: 'keeps a pause to one row; the table is read at once',
    durably_runs_idempotency: 'keeps a key to one run',
    durably_debounced_runs_run: 'for whoever removes a run; the few keys here are read at once',
    durably_workers_pkey: 'keeps a worker to one row; the table is read at once',
    durably_jobs_key: 'keeps a definition to one row; the table is read at once',
    durably_runs_schedule: 'keeps an instant of a schedule to one run',
    durably_archive_strays_pkey: 'keeps a name to one row; the table is read at once',
    durably_settings_pkey: 'keeps a setting to one row; the table is read at once',
    durably_leaders_pkey: 'keeps a lead to one row; the table is read at once',
    durably_subscriptions_key: 'keeps a type to one row of a job; the table is read at once',
    durably_gathered_pkey: 'keeps a message of a job to one row',
    durably_runs_waiting_kind: 'has those that wait for a retry or a decision: search.test.ts',
    durably_statistics_key: 'keeps an hour to one row; the table is filled by a plugin',
    durably_statistics_place_pkey: 'keeps the place of counting to one row',
    durably_steps_live_name: 'keeps a name to one recorded step',
    durably_signals_dedupe: 'keeps a dedupe key to one signal',
  }

  it('use every index there is, or it is written what it is for', async () => {
    const used = new Set<string>()
    for (const [, { accesses }] of await explained()) {
      for (const access of accesses) for (const [index] of access.matchAll(/durably_\w+/g)) used.add(index)
    }
    const indexes = await bench.query<{ readonly name: string }>(
      `select indexname as name from pg_indexes where indexname like 'durably_%' and schemaname = current_schema
        and tablename <> 'durably_schema_versions' order by 1`,
    )
    const idle = indexes.map(({ name }) => name).filter((name) => !used.has(name))
    expect(idle.sort()).toEqual(Object.keys(OTHERWISE).sort())
  })
})
