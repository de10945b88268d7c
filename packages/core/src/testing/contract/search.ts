import { RUN_STATUSES, type RunStatus } from '../../base'
import type { RunQuery } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { FAR_MS, newRun, NO_COUNTS, waitingStep } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

async function found(kit: Kit, query: RunQuery): Promise<string[]> {
  return (await kit.storage.getRuns(query)).map(({ id }) => id)
}

/** Runs whose every property takes turns, so that any conditions together leave some and not others. */
async function manyRuns(kit: Kit): Promise<void> {
  for (let n = 0; n < 24; n++) {
    const labels = { ...(n % 2 === 0 && { team: n % 4 === 0 ? 'red' : 'blue' }), ...(n % 3 === 0 && { size: 'L' }) }
    const [tenant, jobName] = [n % 3 === 0 ? 'acme' : '', n % 5 === 0 ? 'rare' : 'job']
    await kit.storage.enqueue([newRun({ tenant, jobName, labels })])
  }
  const all = await kit.storage.getRuns({})
  for (const [n, run] of all.entries()) if (n % 4 === 1) await kit.order('cancel', run.id)
}

/** What a query means, said with every run at hand. */
async function expected(kit: Kit, query: RunQuery): Promise<string[]> {
  const { cursor, limit, statuses, tenant, jobNames, labels = {} } = query
  const all = await kit.storage.getRuns({})
  const from = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor.id) + 1
  const matching = all
    .slice(from)
    .filter(
      (run) =>
        (statuses === undefined || statuses.includes(run.status)) &&
        (tenant === undefined || run.tenant === tenant) &&
        (jobNames === undefined || jobNames.includes(run.jobName)) &&
        Object.entries(labels).every(([name, value]) => run.labels[name] === value),
    )
  return matching.slice(0, limit).map(({ id }) => id)
}

const SCOPES: readonly RunQuery[] = [{}, { tenant: 'acme' }, { tenant: '' }, { tenant: 'none' }]
const JOBS: readonly RunQuery[] = [{}, { jobNames: ['rare'] }, { jobNames: ['rare', 'job'] }]
const STATUSES: readonly RunQuery[] = [
  {},
  { statuses: ['pending'] },
  { statuses: ['cancelled'] },
  { statuses: ['completed', 'cancelled', 'pending'] },
  { statuses: ['completed', 'failed'] },
]
const LABELS: readonly RunQuery[] = [{}, { labels: { team: 'red' } }, { labels: { team: 'red', size: 'L' } }]

function everyMixture(): readonly RunQuery[] {
  const both = (a: readonly RunQuery[], b: readonly RunQuery[]) => a.flatMap((x) => b.map((y) => ({ ...x, ...y })))
  return both(both(SCOPES, JOBS), both(STATUSES, LABELS))
}

export const SEARCH_CASES = casesOf('required', 'search', {
  'every mixture of conditions, page by page, finds what it says': async (kit) => {
    await manyRuns(kit)
    const middle = (await kit.storage.getRuns({}))[9]
    assert(middle !== undefined, 'getRuns: there should be more runs')
    const cursor = { createdAt: middle.createdAt, id: middle.id }
    for (const query of everyMixture()) {
      for (const page of [{}, { limit: 3 }, { limit: 2, cursor }, { cursor }]) {
        const asked = { ...query, ...page }
        assertEqual(await found(kit, asked), await expected(kit, asked), `ids of ${JSON.stringify(asked)}`)
      }
      const counts = Object.entries(await kit.storage.counts(query))
      const sum = counts.reduce(
        (all, [name, count]) => (RUN_STATUSES.includes(name as RunStatus) ? all + count : all),
        0,
      )
      assertEqual(sum, (await expected(kit, query)).length, `counts of ${JSON.stringify(query)}`)
    }
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

  'counts go as far as they are asked to': async (kit) => {
    await manyRuns(kit)
    for (const scope of [{}, { tenant: 'acme' }, { jobNames: ['job'] }, { tenant: '', jobNames: ['job', 'rare'] }]) {
      const whole = await kit.storage.counts(scope)
      assertEqual(await kit.storage.counts({ ...scope, upTo: 1000 }), whole, `counts of ${JSON.stringify(scope)}`)
      const capped = await kit.storage.counts({ ...scope, upTo: 2 })
      const least = Object.entries(whole).map(([name, count]) => [name, Math.min(count, 2)])
      assertMatches(capped, Object.fromEntries(least), `counts up to 2 of ${JSON.stringify(scope)}`)
    }
  },
})
