import { createDurably } from '@coji/durably-core'
import type { CountQuery, HourRow, RunQuery } from '@coji/durably-core/storage'
import { scaled } from '../../../test/scale'
import type { KyselyStorage } from '../src'

const FEW = { limit: 50 } as const

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
  'a label': { ...FEW, labels: { team: 'red' } },
  'a rare label': { ...FEW, labels: { team: 'rare' } },
  'a label of a tenant': { ...FEW, tenant: 'acme', labels: { team: 'red' } },
  'a label that the tenant has not': { ...FEW, tenant: 'rare', labels: { team: 'red' } },
  'a status': { ...FEW, statuses: ['failed'] },
  'a status that none has': { ...FEW, statuses: ['timed_out'] },
  'states of a tenant': { ...FEW, tenant: 'acme', statuses: ['failed', 'timed_out', 'running'] },
  'states of a rare tenant': { ...FEW, tenant: 'rare', statuses: ['failed', 'completed', 'running'] },
  'completed ones of a rare job': { ...FEW, jobNames: ['rare'], statuses: ['completed'] },
  'failed ones of a rare job': { ...FEW, jobNames: ['rare'], statuses: ['failed'] },
  'failed ones of a job of a tenant': { ...FEW, tenant: 'acme', jobNames: ['job3'], statuses: ['failed'] },
  'a page in the middle': { ...FEW, tenant: 'acme', cursor: { createdAt: '2023-11-15T00:00:00.000Z', id: '' } },
  'a time': { ...FEW, createdFrom: '2023-11-14T22:20:00.000Z', createdBefore: '2023-11-14T22:30:00.000Z' },
  'a time of a tenant': { ...FEW, tenant: 'acme', createdBefore: '2023-11-14T22:30:00.000Z' },
  'the beginning of an id': { ...FEW, idPrefix: '010000000000000000000001' },
  'the beginning of an id of a tenant': { ...FEW, tenant: 'acme', idPrefix: '010000000000000000000001' },
  'a code': { ...FEW, errorCode: 'E_OFTEN' },
  'a rare code': { ...FEW, errorCode: 'E_RARE', tenant: 'acme' },
  'those that wait for a signal': { ...FEW, waitsForKinds: ['signal'] },
  'those of a tenant that wait for a signal': { ...FEW, tenant: 'acme', waitsForKinds: ['signal'] },
  'those that wait for a retry': { ...FEW, tenant: 'acme', waitsForRetry: true },
  'parked ones': { ...FEW, parked: true },
  'ids of a tenant': { tenant: 'acme', ids: ['01000000000000000000000007'] },
  'children of a tenant': { tenant: 'acme', parentRunId: '01000000000000000000000007' },
  'holders of a key': { tenant: 'acme', holdingKey: 'key' },
}

/** No index has both a job and the status of its runs: whoever counts them looks at each run. */
const OF_JOB = { upTo: 1000 } as const
const OF_ALL = { upTo: 10_000 } as const

export const COUNTS: Readonly<Record<string, CountQuery>> = {
  everything: OF_ALL,
  'a tenant': { ...OF_ALL, tenant: 'acme' },
  'a rare tenant': { ...OF_ALL, tenant: 'rare' },
  'a job': { ...OF_JOB, jobNames: ['job'] },
  'a rare job': { ...OF_JOB, jobNames: ['rare'] },
  'a job of a tenant': { ...OF_JOB, tenant: 'acme', jobNames: ['job3'] },
}

const RUN = '01000000000000000000000007'

/**
 * What else a server asks for people, each in one statement. Beside the runs there are a fiftieth as many messages that are
 * kept and notes of operators, through which whoever asks for a rare one walks, and a thousand schedules.
 */
export const READS: Readonly<Record<string, (storage: KyselyStorage) => Promise<unknown>>> = {
  'a run': (storage) => storage.getRun(RUN),
  'the steps of a run': (storage) => storage.getSteps(RUN),
  'the events of a run': (storage) => storage.events.getEvents(RUN, FEW),
  'the logs of a run': (storage) => storage.logs.getLogs(RUN, FEW),
  'notes of operators': (storage) => storage.audit.list(FEW),
  'notes of a rare tenant': (storage) => storage.audit.list({ ...FEW, tenant: 'rare' }),
  'notes of a rare actor': (storage) => storage.audit.list({ ...FEW, actor: 'rare' }),
  'notes of a run': (storage) => storage.audit.list({ ...FEW, target: RUN }),
  'paused jobs': (storage) => storage.limits.paused(),
  schedules: (storage) => storage.cluster.schedules.list(FEW),
  'schedules of a rare tenant': (storage) => storage.cluster.schedules.list({ ...FEW, tenant: 'rare' }),
  'schedules of a rare job': (storage) => storage.cluster.schedules.list({ ...FEW, jobName: 'rare' }),
  workers: (storage) => storage.cluster.placement.getWorkers(),
  'the leader': (storage) => storage.cluster.getLead('leader'),
  messages: (storage) => storage.cluster.inbox.list(FEW),
  'messages of a rare tenant': (storage) => storage.cluster.inbox.list({ ...FEW, tenant: 'rare' }),
  'messages of a rare type': (storage) => storage.cluster.inbox.list({ ...FEW, types: ['rare'] }),
  'unwanted messages': (storage) => storage.cluster.inbox.list({ ...FEW, isUnwanted: true }),
  'counts of messages': (storage) => storage.cluster.inbox.counts({}),
  'counts of messages of a rare tenant': (storage) => storage.cluster.inbox.counts({ tenant: 'rare' }),
}

const HOUR_MS = 3_600_000
const MONTH_HOURS = 30 * 24
const LAST_HOUR = Date.parse('2026-11-19T17:00:00Z')

/** A month of busy hours, each with as many kinds of durations as there may be. */
export async function countHours(storage: KyselyStorage): Promise<void> {
  const buckets = Object.fromEntries(Array.from({ length: 40 }, (_, bucket) => [bucket + 20, 1 + ((bucket * 37) % 11)]))
  const counts = { started: 300, completed: 290, failed: 8, timedOut: 1, cancelled: 1 }
  const rows = Array.from({ length: MONTH_HOURS }, (_, back): HourRow => {
    const hour = new Date(LAST_HOUR - back * HOUR_MS).toISOString()
    return { hour, tenant: null, jobName: null, ...counts, durations: buckets, waits: buckets }
  })
  const to = { finishedAt: '2026-11-19T17:30:00.000Z', runId: 'the last' }
  await storage.statistics.fold({ from: null, to, token: 'counted', rows })
}

/** A month by the hour, with what is added up of it. */
export async function readMonth(storage: KyselyStorage): Promise<void> {
  const from = new Date(LAST_HOUR - (MONTH_HOURS - 1) * HOUR_MS)
  const before = new Date(LAST_HOUR + HOUR_MS)
  const { points } = await createDurably({ storage, logger: null }).getStatistics({ from, before })
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

/** How long anything may take, and how long the charts of a month may. */
export const MOST_MS = { read: 50, month: 10 } as const

/** Of runs: lists and counts need these, and nothing else does. */
export const INDEXES_OF_LISTS = ['tenant_created', 'tenant_status', 'tenant_job', 'job_created', 'error_code'] as const

const ANYTHING = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const
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
      for (let n = 0; n < RUNS_A_ROUND; n++) await job.trigger({}, { tenant: 'acme' })
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
  for (const name of INDEXES_OF_LISTS) await execute(`drop index durably_runs_${name}`)
  const free = await costOfRuns(storage)
  return {
    ...{ 'µs a trigger': paid.trigger, 'a trigger without them': free.trigger },
    ...{ 'µs a run': paid.run, 'a run without them': free.run },
  }
}
