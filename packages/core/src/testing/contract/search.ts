import { RUN_STATUSES } from '../../base'
import type { RunCursor, RunQuery, RunRecord, StatusCounts, StepKind } from '../../port'
import { assert, assertEqual } from '../assert'
import { FAR_MS, newRun, NO_COUNTS, waitingStep } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

async function found(kit: Kit, query: RunQuery): Promise<string[]> {
  return (await kit.storage.getRuns(query)).map(({ id }) => id)
}

/** Runs whose every property takes turns, so that any conditions together leave some and not others; several of each instant. */
async function manyRuns(kit: Kit): Promise<void> {
  const runs = Array.from({ length: 24 }, (_, n) => {
    const labels = { ...(n % 2 === 0 && { team: n % 4 === 0 ? 'red' : 'blue' }), ...(n % 3 === 0 && { size: 'L' }) }
    const [tenant, jobName] = [n % 3 === 0 ? 'acme' : '', n % 5 === 0 ? 'rare' : 'job']
    return newRun({ tenant, jobName, labels })
  })
  for (let n = 0; n < runs.length; n += 5) await kit.storage.enqueue(runs.slice(n, n + 5))
  const all = await kit.storage.getRuns({})
  for (const [n, run] of all.entries()) if (n % 4 === 1) await kit.order('cancel', run.id)
}

/** A query, and what it means, said of each run. */
interface Said {
  readonly query: RunQuery
  has(run: RunRecord): boolean
}

function said(query: RunQuery, has: Said['has']): Said {
  return { query, has }
}

/** What the conditions of most lists mean. */
function saidOf(query: RunQuery): Said {
  const { statuses, tenant, jobNames, labels = {} } = query
  return said(
    query,
    (run) =>
      (statuses === undefined || statuses.includes(run.status)) &&
      (tenant === undefined || run.tenant === tenant) &&
      (jobNames === undefined || jobNames.includes(run.jobName)) &&
      Object.entries(labels).every(([name, value]) => run.labels[name] === value),
  )
}

/** Each of the ones together with each of the others. */
function mixed(ones: readonly Said[], others: readonly Said[]): readonly Said[] {
  return ones.flatMap((one) =>
    others.map((other) => said({ ...one.query, ...other.query }, (run) => one.has(run) && other.has(run))),
  )
}

/** Every query finds what is said of it, page by page, and counts as many. */
async function assertFound(kit: Kit, queries: readonly Said[]): Promise<void> {
  const all = await kit.storage.getRuns({})
  const middle = all[9]
  assert(middle !== undefined, 'getRuns: there should be more runs')
  const cursor: RunCursor = { createdAt: middle.createdAt, id: middle.id }
  for (const { query, has } of queries) {
    const wanted = all.filter(has)
    const behind = all.slice(10).filter(has)
    const pages = [
      { page: {}, runs: wanted },
      { page: { limit: 3 }, runs: wanted.slice(0, 3) },
      { page: { limit: 2, cursor }, runs: behind.slice(0, 2) },
      { page: { cursor }, runs: behind },
    ]
    for (const { page, runs } of pages) {
      const asked = { ...query, ...page }
      const ids = runs.map(({ id }) => id)
      assertEqual(await found(kit, asked), ids, `ids of ${JSON.stringify(asked)}`)
    }
    const counts = countsOf(wanted)
    assertEqual(await kit.storage.counts(query), counts, `counts of ${JSON.stringify(query)}`)
    assertEqual(
      await kit.storage.counts({ ...query, upTo: 2 }),
      capped(counts, 2),
      `counts of ${JSON.stringify(query)}`,
    )
  }
}

function countsOf(runs: readonly RunRecord[]): StatusCounts {
  const count = (has: Said['has']) => runs.filter(has).length
  const byStatus = RUN_STATUSES.map((status) => [status, count((run) => run.status === status)])
  const waits = (kind: string) => count((run) => run.status === 'pending' && run.waitingFor?.kind === kind)
  return { ...Object.fromEntries(byStatus), waitsForRetry: waits('retry'), parked: waits('unpark') }
}

function capped(counts: StatusCounts, upTo: number): StatusCounts {
  const least = Object.entries(counts).map(([name, count]) => [name, Math.min(count, upTo)])
  return Object.fromEntries(least) as unknown as StatusCounts
}

const SCOPES = [{}, { tenant: 'acme' }, { tenant: '' }, { tenant: 'none' }].map(saidOf)
const JOBS = [{}, { jobNames: ['rare'] }, { jobNames: ['rare', 'job'] }].map(saidOf)
const STATUSES = [
  saidOf({}),
  saidOf({ statuses: ['pending'] }),
  saidOf({ statuses: ['cancelled'] }),
  saidOf({ statuses: ['completed', 'cancelled', 'pending'] }),
  saidOf({ statuses: ['completed', 'failed'] }),
]
const LABELS = [{}, { labels: { team: 'red' } }, { labels: { team: 'red', size: 'L' } }].map(saidOf)

/** Runs that wait for whatever there is to wait for, and some that do not, children of two parents. */
async function waitingRuns(kit: Kit): Promise<readonly Said[]> {
  const parents = [await kit.enqueue({ jobName: 'parent' }), await kit.enqueue({ jobName: 'parent' })].map(
    ({ id }) => id,
  )
  const kinds = new Map<string, StepKind>()
  for (let n = 0; n < 20; n++) {
    const labels = n % 2 === 0 ? { team: 'red' } : {}
    const [tenant, jobName] = [n % 3 === 0 ? 'acme' : '', n % 5 === 0 ? 'rare' : 'job']
    const holder = await kit.start({ tenant, jobName, labels, parentRunId: parents[n % 4 === 0 ? 0 : 1] ?? null })
    const kind = n % 8 < 4 ? 'sleep' : 'signal'
    const detail = { name: 'Error', code: n % 8 < 6 ? 'E_OFTEN' : 'E_RARE' }
    if (n % 4 === 0 || n % 4 === 1) {
      const step = waitingStep({ kind, ...(kind === 'sleep' && { due: { inMs: FAR_MS } }) })
      await holder.leave('suspend', { steps: [step.name] }, { steps: [step] })
      kinds.set(holder.id, kind)
    } else if (n % 4 === 2) await holder.leave('retryLater', { error: 'broken', detail, delayMs: FAR_MS })
    else if (n % 8 === 3) await holder.leave('park')
    else await holder.leave('fail', { error: 'broken', detail })
  }
  return saidOfWaiting(kinds, parents)
}

function saidOfWaiting(kinds: ReadonlyMap<string, StepKind>, parents: readonly string[]): readonly Said[] {
  const ofKinds = (...wanted: readonly StepKind[]) =>
    said({ waitsForKinds: wanted }, ({ id }) => wanted.some((kind) => kinds.get(id) === kind))
  const waits = (run: RunRecord, kind: string) => run.waitingFor?.kind === kind
  return [
    ...[ofKinds('sleep'), ofKinds('sleep', 'signal'), ofKinds('child')],
    said({ waitsForRetry: true }, (run) => waits(run, 'retry')),
    said({ waitsForRetry: false }, (run) => !waits(run, 'retry')),
    said({ parked: true }, (run) => waits(run, 'unpark')),
    said({ parked: false, waitsForRetry: false }, (run) => !waits(run, 'unpark') && !waits(run, 'retry')),
    said({ parked: true, waitsForRetry: true }, () => false),
    ...['E_OFTEN', 'E_RARE'].map((errorCode) => said({ errorCode }, (run) => run.errorDetail?.code === errorCode)),
    ...parents.map((parentRunId) => said({ parentRunId }, (run) => run.parentRunId === parentRunId)),
    ...parents.map((id) => said({ idPrefix: id.slice(0, 3) }, () => true)),
    ...parents.map((id) => said({ ids: [id] }, (run) => run.id === id)),
  ]
}

export const SEARCH_CASES = casesOf('required', 'search', {
  'every mixture of conditions, page by page, finds what it says': async (kit) => {
    await manyRuns(kit)
    await assertFound(kit, mixed(mixed(SCOPES, JOBS), mixed(STATUSES, LABELS)))
  },

  'whatever is waited for, with every other condition, finds what it says': async (kit) => {
    const waiting = await waitingRuns(kit)
    await assertFound(kit, mixed(waiting, mixed(SCOPES.slice(0, 2), [...JOBS.slice(0, 2), ...LABELS.slice(1, 2)])))
    await assertFound(kit, mixed(waiting, STATUSES.slice(1)))
  },

  'some time, with every other condition, finds what it says': async (kit) => {
    await manyRuns(kit)
    const all = await kit.storage.getRuns({})
    const [from, before] = [all[17]?.createdAt ?? '', all[4]?.createdAt ?? '']
    const times = [
      said({ createdFrom: from }, ({ createdAt }) => createdAt >= from),
      said({ createdBefore: before }, ({ createdAt }) => createdAt < before),
      said({ createdFrom: from, createdBefore: before }, (run) => run.createdAt >= from && run.createdAt < before),
    ]
    await assertFound(kit, mixed(times, mixed(SCOPES, [...JOBS, ...LABELS])))
  },

  'runs are found by the time when they were created': async (kit) => {
    const first = await kit.enqueue()
    const later = await kit.enqueue()
    const [from, before] = [first.createdAt, '2999-01-01T00:00:00.000Z']
    assertEqual(await found(kit, { createdFrom: from, createdBefore: before }), [later.id, first.id], 'ids of both')
    assertEqual(await found(kit, { createdBefore: from }), [], 'ids before the first')
    assertEqual(await found(kit, { createdFrom: before }), [], 'ids of the future')
    const own = await found(kit, { createdFrom: later.createdAt })
    assert(own.includes(later.id), 'createdFrom: a run of that very instant should be there')
  },

  'runs are found by how their id begins': async (kit) => {
    const ids = [
      '01AAAAAAAAAAAAAAAAAAAAAAAA',
      '01AAAAAAAAAAAAAAAAAAAAAAAB',
      '01ABAAAAAAAAAAAAAAAAAAAAAA',
      '01ZZZZZZZZZZZZZZZZZZZZZZZZ',
    ]
    for (const id of ids) await kit.storage.enqueue([newRun({ id })])
    const sorted = async (idPrefix: string) => (await found(kit, { idPrefix })).sort()
    assertEqual(await sorted('01A'), ids.slice(0, 3), 'ids with 01A')
    assertEqual(await sorted('01AAAAAAAAAAAAAAAAAAAAAAAA'), ids.slice(0, 1), 'ids with a whole id')
    assertEqual(await sorted('01Z'), ids.slice(3), 'ids with the last letter')
    assertEqual(await sorted('02'), [], 'ids with another beginning')
    assertEqual(await sorted(''), ids, 'ids with any')
  },

  'runs are found by the code of their error': async (kit) => {
    const failed = await kit.start()
    await failed.leave('fail', { error: 'broken', detail: { name: 'Error', code: 'E_PAY' } })
    const retried = await kit.start()
    await retried.leave('retryLater', { error: 'broken', detail: { name: 'Error', code: 'E_PAY' }, delayMs: FAR_MS })
    const without = await kit.start()
    await without.leave('fail', { error: 'broken', detail: { name: 'Error' } })
    await kit.enqueue()
    const counts = { ...NO_COUNTS, failed: 1, pending: 1, waitsForRetry: 1 }
    assertEqual(await kit.storage.counts({ errorCode: 'E_PAY' }), counts, 'counts of the code')
    assertEqual(await found(kit, { errorCode: 'E_PAY' }), [retried.id, failed.id], 'ids of the code')
    assertEqual(await found(kit, { errorCode: 'E_PAY', statuses: ['failed'] }), [failed.id], 'ids of failed ones')
    assertEqual(await found(kit, { errorCode: 'E_PAY', limit: 1 }), [retried.id], 'the newest id')
    assertEqual(await found(kit, { errorCode: 'E_OTHER' }), [], 'ids of another code')
  },

  'runs are found by what they wait for': async (kit) => {
    const waitFor = async (kind: 'signal' | 'sleep', tenant = '') => {
      const holder = await kit.start({ tenant })
      const step = waitingStep({ kind, ...(kind === 'sleep' && { due: { inMs: FAR_MS } }) })
      await holder.leave('suspend', { steps: [step.name] }, { steps: [step] })
      return holder.id
    }
    const [signal, sleep, other] = [await waitFor('signal'), await waitFor('sleep'), await waitFor('signal', 'acme')]
    const running = await kit.start()
    await running.commit({ steps: [waitingStep({ kind: 'signal' })] })
    assertEqual(await found(kit, { waitsForKinds: ['signal'] }), [other, signal], 'ids of those that wait for a signal')
    assertEqual(await found(kit, { waitsForKinds: ['signal'], tenant: '' }), [signal], 'ids of one tenant')
    assertEqual(await found(kit, { waitsForKinds: ['sleep', 'signal'], limit: 2 }), [other, sleep], 'ids of two kinds')
    assertEqual(await found(kit, { waitsForKinds: ['child'] }), [], 'ids of another kind')
    assertEqual(await found(kit, { waitsForKinds: [] }), [], 'ids of no kind')
    await kit.order('cancel', signal)
    assertEqual(await found(kit, { waitsForKinds: ['signal'], tenant: '' }), [], 'ids after a cancel')
  },
})
