import { createDurably } from '@coji/durably-core'
import type { CountQuery, HourRow, RunQuery } from '@coji/durably-core/storage'
import { scaled } from '../../../test/scale'
import type { KyselyStorage } from '../src'

const FEW = { limit: 50 } as const
const TIMES = ['sleep', 'run', 'stream', 'transaction'] as const

/** What people ask for, with what is rare in it and what is not there. */
export const LISTS: Readonly<Record<string, RunQuery>> = {
  everything: FEW,
  'a tenant': { ...FEW, tenant: 'acme' },
  'a rare tenant': { ...FEW, tenant: 'rare' },
  'no tenant': { ...FEW, tenant: 'none' },
  'a job': { ...FEW, jobNames: ['job'] },
  'a rare job': { ...FEW, jobNames: ['rare'] },
  'a rare job of a tenant that has none': { ...FEW, tenant: 'acme', jobNames: ['rare'] },
  'a job of a tenant': { ...FEW, tenant: 'acme', jobNames: ['job3'] },
  'rare jobs': { ...FEW, jobNames: ['rare', 'none', 'nowhere'] },
  'jobs, common and rare': { ...FEW, jobNames: ['rare', 'job', 'job3'] },
  'rare jobs of a tenant': { ...FEW, tenant: 'acme', jobNames: ['rare', 'none'] },
  'a label': { ...FEW, labels: { team: 'red' } },
  'a rare label': { ...FEW, labels: { team: 'rare' } },
  'a label of a tenant': { ...FEW, tenant: 'acme', labels: { team: 'red' } },
  'a label that the tenant has not': { ...FEW, tenant: 'rare', labels: { team: 'red' } },
  'a status': { ...FEW, statuses: ['failed'] },
  'a status that none has': { ...FEW, statuses: ['timed_out'] },
  'the status that most have': { ...FEW, statuses: ['completed'] },
  'states of a tenant': { ...FEW, tenant: 'acme', statuses: ['failed', 'timed_out', 'running'] },
  'states of a rare tenant': { ...FEW, tenant: 'rare', statuses: ['failed', 'completed', 'running'] },
  'a page in the middle': { ...FEW, tenant: 'acme', cursor: { createdAt: '2023-11-15T00:00:00.000Z', id: '' } },
  'a time': { ...FEW, createdFrom: '2023-11-14T22:20:00.000Z', createdBefore: '2023-11-14T22:30:00.000Z' },
  'a time of a tenant': { ...FEW, tenant: 'acme', createdBefore: '2023-11-14T22:30:00.000Z' },
  'a time of a label': { ...FEW, labels: { team: 'red' }, createdBefore: '2023-11-14T22:30:00.000Z' },
  'a code': { ...FEW, errorCode: 'E_OFTEN' },
  'ids of a tenant': { tenant: 'acme', ids: ['01000000000000000000000007'] },
  'holders of a key': { tenant: 'acme', holdingKey: 'key' },
}

/** No index has their runs in the order of the list: a way to them is looked for, and gone in stretches. */
export const MIXTURES: Readonly<Record<string, RunQuery>> = {
  'completed ones of a rare job': { ...FEW, jobNames: ['rare'], statuses: ['completed'] },
  'failed ones of a rare job': { ...FEW, jobNames: ['rare'], statuses: ['failed'] },
  'failed ones of a job of a tenant': { ...FEW, tenant: 'acme', jobNames: ['job3'], statuses: ['failed'] },
  'states of a job': { ...FEW, jobNames: ['job3'], statuses: ['failed', 'cancelled'] },
  'a label and a status that none has': { ...FEW, labels: { team: 'red' }, statuses: ['timed_out'] },
  'a label and a rare job': { ...FEW, labels: { team: 'red' }, jobNames: ['rare'] },
  'a label and a job of which none has it': { ...FEW, labels: { size: 'L' }, jobNames: ['job'] },
  'a label, a job and a status of a tenant': {
    ...{ ...FEW, tenant: 'acme', labels: { size: 'L' } },
    ...{ jobNames: ['job'], statuses: ['completed'] },
  },
  'two labels, one of them rare': { ...FEW, labels: { team: 'rare', size: 'L' } },
  'more jobs than are looked for one by one': {
    ...{ ...FEW, tenant: 'acme' },
    jobNames: Array.from({ length: 80 }, (_, n) => `none${n}`),
  },
  'the beginning of an id': { ...FEW, idPrefix: '010000000000000000000001' },
  'the beginning of an id of a tenant': { ...FEW, tenant: 'acme', idPrefix: '010000000000000000000001' },
  'the beginning of every id': { ...FEW, idPrefix: '01' },
  'the beginning of every id, and a rare job': { ...FEW, idPrefix: '01', jobNames: ['rare'] },
  'a rare code of a tenant': { ...FEW, errorCode: 'E_RARE', tenant: 'acme' },
  'a code that the tenant has not': { ...FEW, errorCode: 'E_OFTEN', tenant: 'rare' },
  'those that wait for a signal': { ...FEW, waitsForKinds: ['signal'] },
  'those of a tenant that wait for a signal': { ...FEW, tenant: 'acme', waitsForKinds: ['signal'] },
  'those of a rare tenant that wait for a time': { ...FEW, tenant: 'rare', waitsForKinds: TIMES },
  'those that wait for a time': { ...FEW, waitsForKinds: TIMES },
  'those of a rare job that wait for a time': { ...FEW, jobNames: ['rare'], waitsForKinds: TIMES },
  'those that wait for a child': { ...FEW, waitsForKinds: ['child', 'waitAll'] },
  'those that wait for a retry': { ...FEW, waitsForRetry: true },
  'those of a tenant that wait for a retry': { ...FEW, tenant: 'acme', waitsForRetry: true },
  'those with a label that wait for a retry': { ...FEW, labels: { team: 'rare' }, waitsForRetry: true },
  'parked ones': { ...FEW, parked: true },
  'parked ones of a tenant': { ...FEW, tenant: 'tenant7', parked: true },
  'children of a tenant': { tenant: 'acme', parentRunId: '01000000000000000000000007' },
  'many children': { ...FEW, parentRunId: '01000000000000000000000009' },
  'many children, of another tenant': { ...FEW, tenant: 'rare', parentRunId: '01000000000000000000000009' },
}

const SOME = { upTo: 1000 } as const
const OF_ALL = { upTo: 10_000 } as const

export const COUNTS: Readonly<Record<string, CountQuery>> = {
  everything: OF_ALL,
  'a tenant': { ...OF_ALL, tenant: 'acme' },
  'a rare tenant': { ...OF_ALL, tenant: 'rare' },
  'a job': { ...SOME, jobNames: ['job'] },
  'a rare job': { ...SOME, jobNames: ['rare'] },
  'a job of a tenant': { ...SOME, tenant: 'acme', jobNames: ['job3'] },
  'several jobs': { ...SOME, jobNames: ['rare', 'job', 'job3'] },
  'rare jobs of a tenant': { ...SOME, tenant: 'acme', jobNames: ['rare', 'none'] },
  'a label': { ...SOME, labels: { team: 'red' } },
  'a rare label': { ...SOME, labels: { team: 'rare' } },
  'a label and a job of which none has it': { ...SOME, labels: { size: 'L' }, jobNames: ['job'] },
  'failed ones with a label': { ...SOME, labels: { size: 'L' }, statuses: ['failed'] },
  'a code': { ...SOME, errorCode: 'E_OFTEN' },
  'a rare code': { ...SOME, errorCode: 'E_RARE', tenant: 'acme' },
  'a time': { ...SOME, createdFrom: '2023-11-14T22:20:00.000Z', createdBefore: '2023-11-15T22:30:00.000Z' },
  'a time of a job': { ...SOME, jobNames: ['job'], createdBefore: '2023-11-14T22:30:00.000Z' },
  'the beginning of every id': { ...SOME, idPrefix: '01' },
  'those that wait for a signal': { ...SOME, waitsForKinds: ['signal'] },
  'those that wait for a time': { ...SOME, waitsForKinds: TIMES },
  'those of a rare tenant that wait for a time': { ...SOME, tenant: 'rare', waitsForKinds: TIMES },
  'those that wait for a retry': { ...SOME, waitsForRetry: true },
  'parked ones': { ...SOME, parked: true },
  'many children': { ...SOME, parentRunId: '01000000000000000000000009' },
}

const HOUR_MS = 3_600_000
const MONTH_HOURS = 30 * 24
const LAST_HOUR = Date.parse('2026-11-19T17:00:00Z')
const MONTH = {
  from: new Date(LAST_HOUR - (MONTH_HOURS - 1) * HOUR_MS).toISOString(),
  before: new Date(LAST_HOUR + HOUR_MS).toISOString(),
} as const

const RUN = idOf(7)
const WITH_STEPS = idOf(8)

/** How many rows of each there are beside the runs. */
const COUNTED = {
  events: scaled({ quick: 20, full: 10_000 }),
  eventsOfARun: scaled({ quick: 1500, full: 100_000 }),
  logsOfARun: scaled({ quick: 1500, full: 10_000 }),
  steps: scaled({ quick: 500, full: 5000 }),
  schedules: scaled({ quick: 1000, full: 1_000_000 }),
}
const EVERY = scaled({ quick: 11, full: 1 })
const FOLLOWED = 100
const WITH_EVENTS = idOf(FOLLOWED + 100)
const LOGGED = scaled({ quick: 1, full: 100 })

function idOf(number: number): string {
  return `01${String(number).padStart(24, '0')}`
}

interface Words {
  /** The number of a run. */
  readonly nth: string
  /** So many rows with a column `i`. */
  numbers(count: number): string
  /** JSON of a text. */
  json(text: string): string
}

/** What there is beside the runs, in the words of a database. Messages and notes are of all runs, or of some in the quick lane. */
export function fillOthers({ nth, numbers, json }: Words): readonly string[] {
  const some = (first: number) => `${nth} % ${EVERY} = ${first % EVERY}`
  const labels = json(`'{"run":{"labels":{"team":"red"}}}'`)
  return [
    `insert into durably_inbox (id, tenant, type, payload, available_at, created_at, processed_at, wanted)
      select id, tenant, job_name, payload, created_at, created_at, case when status <> 'pending' then created_at end,
        case when job_name = 'job3' then 0 else 1 end from durably_runs where ${some(21)}`,
    `insert into durably_audit (id, at, tenant, actor, action, target_kind, target, before, after)
      select id, created_at, tenant, tenant, 'retry', 'run', id, ${json(`'{"status":"failed"}'`)}, ${json(`'{"status":"pending"}'`)}
      from durably_runs where ${some(7)}`,
    `insert into durably_schedules (id, tenant, name, job_name, definition, overlap, fired_until, created_at, updated_at)
      select id, tenant, 'schedule ' || id, job_name, ${labels}, 'allow', created_at, created_at, created_at
      from durably_runs where ${nth} <= ${COUNTED.schedules}`,
    `insert into durably_run_events (run_id, seq, event_type, payload, created_at)
      select r.id, n.i, 'step:progress', ${json(`'{"n":1}'`)}, r.created_at
      from durably_runs as r cross join (${numbers(COUNTED.events)}) as n where ${nth} <= ${FOLLOWED}`,
    `insert into durably_run_events (run_id, seq, event_type, payload, created_at)
      select r.id, n.i, 'step:progress', ${json(`'{"n":1}'`)}, r.created_at
      from durably_runs as r cross join (${numbers(COUNTED.eventsOfARun)}) as n where r.id = '${WITH_EVENTS}'`,
    `update durably_runs set last_event_sequence = ${COUNTED.eventsOfARun} where id = '${WITH_EVENTS}'`,
    `update durably_runs set last_event_sequence = ${COUNTED.events} where ${nth} <= ${FOLLOWED}`,
    `insert into durably_logs (id, run_id, level, message, timestamp)
      select 'L' || n.i || ' ' || r.id, r.id, 'info', 'text', r.created_at
      from durably_runs as r cross join (${numbers(COUNTED.logsOfARun)}) as n where ${nth} >= 7 and ${nth} < ${7 + LOGGED}`,
    `insert into durably_steps (id, run_id, name, "index", kind, status, attempt, output, lease_epoch, claim_token, started_at, completed_at)
      select 'N' || n.i, r.id, 'step ' || n.i, n.i, 'run', 'completed', 1, ${json(`'{"n":1}'`)}, 1, 'token', r.created_at, r.created_at
      from durably_runs as r cross join (${numbers(COUNTED.steps)}) as n where r.id = '${WITH_STEPS}'`,
  ]
}

const FOLLOWERS = Array.from({ length: FOLLOWED }, (_, n) => ({ runId: idOf(n + 1), after: 0 }))
const PLACES = Array.from({ length: COUNTED.logsOfARun }, (_, n) => ({ runId: RUN, id: `L${n + 1} ${RUN}` }))
const LAST_LOGS = `L${COUNTED.logsOfARun - 10} ${RUN}`
const LONG_PAGE = { limit: 201 } as const
const MANY_LABELS = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [n === 0 ? 'team' : `label ${n}`, 'red']))

/** Of what an index has in another order, or of many rows: in pieces, between which the event loop turns. */
export const PIECES: Readonly<Record<string, (storage: KyselyStorage) => Promise<unknown>>> = {
  'what happened to a hundred runs': (storage) => storage.events.tail(FOLLOWERS, 100),
  'logs of what happened': (storage) => storage.logs.findLogs(PLACES),
  'all logs of a run': (storage) => storage.logs.getLogs(RUN, {}),
  'many logs of a run': (storage) => storage.logs.getLogs(RUN, { after: `L100 ${RUN}`, limit: COUNTED.logsOfARun }),
  'all that happened to a run': (storage) => storage.events.getEvents(WITH_EVENTS, {}),
  'notes of a rare tenant': (storage) => storage.audit.list({ ...FEW, tenant: 'rare' }),
  'notes of a rare actor': (storage) => storage.audit.list({ ...FEW, actor: 'rare' }),
  'notes of what nobody did': (storage) => storage.audit.list({ ...FEW, action: 'nothing' }),
  'schedules of a rare job': (storage) => storage.cluster.schedules.list({ ...FEW, jobName: 'rare' }),
  'schedules with a label that none has': (storage) =>
    storage.cluster.schedules.list({ ...FEW, labels: { team: 'none' } }),
  'schedules of a tenant with a label': (storage) =>
    storage.cluster.schedules.list({ ...FEW, tenant: 'acme', labels: { team: 'red' } }),
  'paused schedules': (storage) => storage.cluster.schedules.list({ ...FEW, isPaused: true }),
  'messages of a rare tenant': (storage) => storage.cluster.inbox.list({ ...FEW, tenant: 'rare' }),
  'messages of a rare type': (storage) => storage.cluster.inbox.list({ ...FEW, types: ['rare'] }),
  'messages of a type that none has': (storage) => storage.cluster.inbox.list({ ...FEW, types: ['none'] }),
  'messages that are sent out anew': (storage) =>
    storage.cluster.inbox.replay({ query: { types: ['none'] }, limit: 500 }),
  'unwanted messages': (storage) => storage.cluster.inbox.list({ ...FEW, isUnwanted: true }),
  'counts of messages': (storage) => storage.cluster.inbox.counts({}),
  'counts of messages of a rare tenant': (storage) => storage.cluster.inbox.counts({ tenant: 'rare' }),
}

/** What else a server asks for people, each in one statement. */
export const READS: Readonly<Record<string, (storage: KyselyStorage) => Promise<unknown>>> = {
  'a run': (storage) => storage.getRun(RUN),
  'the steps of a run': (storage) => storage.getSteps(RUN),
  'many steps of a run': (storage) => storage.getSteps(WITH_STEPS),
  'a long page of runs': (storage) => storage.getRuns({ ...LONG_PAGE, tenant: 'acme' }),
  'a long page of notes': (storage) => storage.audit.list(LONG_PAGE),
  'a long page of messages': (storage) => storage.cluster.inbox.list(LONG_PAGE),
  'runs by five hundred ids': (storage) => storage.getRuns({ ids: Array.from({ length: 500 }, (_, n) => idOf(n + 1)) }),
  'runs with a hundred labels': (storage) => storage.getRuns({ ...FEW, labels: MANY_LABELS }),
  'why a run waits': async (storage) => {
    const [run] = await storage.getRuns({ statuses: ['pending'], limit: 1 })
    await createDurably({ storage, logger: null }).explain(run?.id ?? '')
  },
  'the events of a run': (storage) => storage.events.getEvents(RUN, FEW),
  'the logs of a run': (storage) => storage.logs.getLogs(RUN, FEW),
  'the last logs of a run': (storage) => storage.logs.getLogs(RUN, { ...FEW, after: LAST_LOGS }),
  'notes of operators': (storage) => storage.audit.list(FEW),
  'notes of a run': (storage) => storage.audit.list({ ...FEW, target: RUN }),
  'paused jobs': (storage) => storage.limits.paused(),
  schedules: (storage) => storage.cluster.schedules.list(FEW),
  'schedules of a rare tenant': (storage) => storage.cluster.schedules.list({ ...FEW, tenant: 'rare' }),
  workers: (storage) => storage.cluster.placement.getWorkers(),
  'the leader': (storage) => storage.cluster.getLead('leader'),
  messages: (storage) => storage.cluster.inbox.list(FEW),
  'a month of a tenant': (storage) => storage.statistics.hours({ ...MONTH, tenant: 'tenant7', jobName: null }),
  'a month of a job': (storage) => storage.statistics.hours({ ...MONTH, tenant: null, jobName: 'job3' }),
  'a month of a job of a tenant': (storage) => storage.statistics.hours({ ...MONTH, tenant: 'acme', jobName: 'rare' }),
}

/** A month of busy hours, each with as many kinds of durations as there may be; the same for some tenants and jobs. */
export async function countHours(storage: KyselyStorage): Promise<void> {
  const buckets = Object.fromEntries(Array.from({ length: 40 }, (_, bucket) => [bucket + 20, 1 + ((bucket * 37) % 11)]))
  const counts = { started: 300, completed: 290, failed: 8, timedOut: 1, cancelled: 1 }
  const scopes = [null, 'tenant7', 'acme'].flatMap((tenant) =>
    [null, 'job3', 'rare'].map((jobName) => ({ tenant, jobName })),
  )
  const rows = scopes.flatMap((scope) =>
    Array.from({ length: MONTH_HOURS }, (_, back): HourRow => {
      const hour = new Date(LAST_HOUR - back * HOUR_MS).toISOString()
      return { hour, ...scope, ...counts, durations: buckets, waits: buckets }
    }),
  )
  const to = { finishedAt: '2026-11-19T17:30:00.000Z', runId: 'the last' }
  await storage.statistics.fold({ from: null, to, token: 'counted', rows })
}

/** A month by the hour, with what is added up of it. */
export async function readMonth(storage: KyselyStorage): Promise<void> {
  const { points } = await createDurably({ storage, logger: null }).getStatistics(MONTH)
  if (points.length !== MONTH_HOURS) throw new Error(`There are ${points.length} hours.`)
}

/** What is counted up to some number, and the same counted to the end and cut off. */
export async function countedBothWays(storage: KyselyStorage, query: CountQuery) {
  const { upTo = 0, ...all } = query
  const whole = Object.entries(await storage.counts(all)).map(([name, count]) => [name, Math.min(count, upTo)])
  return { capped: await storage.counts(query), whole: Object.fromEntries(whole) as unknown }
}

/** What the fastest of some took: the others had something else to do on this machine. */
export async function bestMs(act: () => Promise<unknown>, times = 5): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let n = 0; n < times; n++) {
    const begin = performance.now()
    await act()
    best = Math.min(best, performance.now() - begin)
  }
  return best
}

/** How often something slow is done again, and how often a month is read: only the full lane looks at how long it took. */
export const TRIES = scaled({ quick: 1, full: 8 })
export const MONTHS = scaled({ quick: 1, full: 100 })

/** How often the event loop turns, and the longest time in which it did not. */
export class Heart {
  beats = 0
  longestMs = 0
  #last = performance.now()
  #beating: NodeJS.Immediate | undefined

  start(): void {
    this.#last = performance.now()
    this.#beating = setImmediate(() => this.#beat())
  }

  stop(): void {
    clearImmediate(this.#beating)
    this.#note()
  }

  #beat(): void {
    this.#note()
    this.beats += 1
    this.start()
  }

  #note(): void {
    this.longestMs = Math.max(this.longestMs, performance.now() - this.#last)
  }
}

/**
 * What the longest of the statements took that some act sends, and the longest time in which the event loop did not turn. Again
 * when it was long: others had something to do on this machine.
 */
export async function longest(times: number[], act: () => Promise<unknown>) {
  let [ms, stallMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let n = 0; n < TRIES && Math.max(ms, stallMs) > MOST_MS.statement / 2; n++) {
    times.length = 0
    const heart = new Heart()
    heart.start()
    await act()
    heart.stop()
    ms = Math.min(ms, Math.max(0, ...times))
    stallMs = Math.min(stallMs, heart.longestMs)
  }
  return { ms, stallMs }
}

/** How long any statement may take, and how long the charts of a month may. */
export const MOST_MS = { statement: 50, month: 10 } as const

/** Lists and counts need these, and nothing else does. One of them is on Postgres only. */
export const INDEXES_OF_LISTS = [
  ...['runs_of_tenant', 'runs_of_tenant_status', 'runs_of_tenant_job', 'runs_job_created', 'runs_error_code'],
  ...['runs_waiting_kind', 'run_labels_value', 'run_labels_tenant_value'],
] as const

const ANYTHING = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const
const TRIGGER = { tenant: 'acme', labels: { team: 'red', size: 'L' } } as const
const ROUNDS = 3
const RUNS_A_ROUND = scaled({ quick: 10, full: 100 })

/** Microseconds of a trigger, and of a run of one step with all its commits. */
export async function costOfRuns(storage: KyselyStorage) {
  const durably = createDurably({ storage, logger: null })
  const job = durably.defineJob({ name: 'paid for', input: ANYTHING }, (ctx) => ctx.run('step', () => 1))
  const times = { trigger: Number.POSITIVE_INFINITY, run: Number.POSITIVE_INFINITY }
  const timed = async (name: keyof typeof times, act: () => Promise<unknown>) => {
    const begin = performance.now()
    await act()
    times[name] = Math.min(times[name], ((performance.now() - begin) * 1000) / RUNS_A_ROUND)
  }
  for (let round = 0; round < ROUNDS; round++) {
    await timed('trigger', async () => {
      for (let n = 0; n < RUNS_A_ROUND; n++) await job.trigger({}, TRIGGER)
    })
    await timed('run', () => durably.runUntilIdle())
  }
  return { trigger: Math.round(times.trigger), run: Math.round(times.run) }
}

/** Prints what triggers and runs cost with the indexes of lists, and without them. Nothing can be listed afterwards. */
export async function reportIndexes(
  storage: KyselyStorage,
  execute: (statement: string) => Promise<unknown> | unknown,
) {
  const paid = await costOfRuns(storage)
  for (const name of INDEXES_OF_LISTS) await execute(`drop index if exists durably_${name}`)
  const free = await costOfRuns(storage)
  return {
    ...{ 'µs a trigger': paid.trigger, 'a trigger without them': free.trigger },
    ...{ 'µs a run': paid.run, 'a run without them': free.run },
  }
}
