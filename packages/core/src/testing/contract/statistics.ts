import type { CountedUntil, HourRow, RunEnd, StatisticsStorage } from '../../port'
import { assert, assertEqual, assertMatches } from '../assert'
import { newId } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

const HOUR = '2026-01-31T09:00:00.000Z'
const NEXT_HOUR = '2026-01-31T10:00:00.000Z'
const NOTHING = { started: 0, completed: 0, failed: 0, timedOut: 0, cancelled: 0, durations: {}, waits: {} } as const
const ALL = { limit: 100, lagMs: 0 } as const

function statistics(kit: Kit): StatisticsStorage {
  const { statistics } = kit.storage
  assert(statistics !== undefined, 'statistics: the storage should have them')
  return statistics
}

function row(over: Partial<HourRow> = {}): HourRow {
  return { hour: HOUR, tenant: null, jobName: null, ...NOTHING, ...over }
}

function placeOf({ finishedAt, runId }: RunEnd): CountedUntil {
  return { finishedAt, runId }
}

/** Counts up to the end, as these rows. */
function fold(
  kit: Kit,
  [from, to]: readonly [from: CountedUntil | null, to: RunEnd],
  rows: readonly HourRow[],
): Promise<boolean> {
  return statistics(kit).fold({ from, to: placeOf(to), token: newId(), rows })
}

/** So many runs that have completed. */
async function endedRuns(kit: Kit, count: number): Promise<readonly RunEnd[]> {
  for (let index = 0; index < count; index++) await (await kit.start({ tenant: 'a' })).leave('complete')
  const { ends } = await statistics(kit).ends(ALL)
  assertEqual(ends.length, count, 'ends to be counted')
  return ends
}

async function hoursOf(kit: Kit, over: Partial<Parameters<StatisticsStorage['hours']>[0]> = {}) {
  const query = { tenant: null, jobName: null, from: HOUR, before: '2026-02-01T00:00:00.000Z', ...over }
  return (await statistics(kit).hours(query)).hours
}

export const STATISTICS_CASES = casesOf('statistics', 'statistics', {
  'ends come in their order, with what there is to count': async (kit) => {
    const waiting = await kit.enqueue({ jobName: 'waiting' })
    const cancelled = await kit.order('cancel', (await kit.enqueue()).id)
    const holder = await kit.start({ tenant: 'a', jobName: 'mail' })
    const failed = await holder.leave('fail')
    const { from, ends } = await statistics(kit).ends(ALL)
    assertEqual(from, null, 'where counting is')
    assertEqual(ends.length, 2, 'ends')
    assert(
      ends.every(({ runId }) => runId !== waiting.id),
      'a run that waits has no end',
    )
    const [first, second] = [
      ends.find(({ runId }) => runId === cancelled.id),
      ends.find(({ runId }) => runId === failed.id),
    ]
    const { availableAt, startedAt, finishedAt } = failed
    const own = { tenant: 'a', jobName: 'mail', status: 'failed', attemptBase: 0 } as const
    assertEqual(
      second,
      { runId: failed.id, ...own, availableAt, startedAt, finishedAt: finishedAt ?? '' },
      'the failed run',
    )
    assertMatches(
      first ?? {},
      { status: 'cancelled', startedAt: null, finishedAt: cancelled.finishedAt ?? '' },
      'the other',
    )
    const places = ends.map(({ finishedAt: at, runId }) => `${at} ${runId}`)
    assertEqual(places, [...places].sort(), 'the order of the ends')
  },

  'what ended just now is not told yet': async (kit) => {
    await (await kit.start()).leave('complete')
    assertEqual((await statistics(kit).ends({ limit: 9, lagMs: 3_600_000 })).ends, [], 'ends an hour old')
  },

  'counting goes on after the last end counted, each page once': async (kit) => {
    const ends = await endedRuns(kit, 5)
    const seen: string[] = []
    for (;;) {
      const { from, ends: page } = await statistics(kit).ends({ limit: 2, lagMs: 0 })
      const last = page.at(-1)
      if (last === undefined) break
      seen.push(...page.map(({ runId }) => runId))
      assert(await fold(kit, [from, last], [row({ completed: page.length })]), 'the fold should be kept')
    }
    assertEqual(
      seen,
      ends.map(({ runId }) => runId),
      'runs counted',
    )
    assertEqual(await hoursOf(kit), [row({ completed: 5 })], 'the hour')
  },

  'rows are added, bucket by bucket': async (kit) => {
    const [first, second] = await endedRuns(kit, 2)
    assert(first !== undefined && second !== undefined, 'two ends')
    const once = row({ started: 2, failed: 1, durations: { 4: 1, 9: 2 }, waits: { 0: 1 } })
    assert(await fold(kit, [null, first], [once, row({ hour: NEXT_HOUR, cancelled: 1 })]), 'the first should be kept')
    const more = row({ started: 1, completed: 3, timedOut: 1, durations: { 9: 1, 12: 5 } })
    assert(await fold(kit, [placeOf(first), second], [more]), 'the second should be kept')
    const both = { started: 3, completed: 3, failed: 1, timedOut: 1, durations: { 4: 1, 9: 3, 12: 5 }, waits: { 0: 1 } }
    assertEqual(await hoursOf(kit), [row(both), row({ hour: NEXT_HOUR, cancelled: 1 })], 'the hours')
    assertEqual(
      (await statistics(kit).hours({ tenant: null, jobName: null, from: HOUR, before: HOUR })).hours,
      [],
      'none',
    )
  },

  'rows of a tenant, of a job and of all are apart': async (kit) => {
    const [end] = await endedRuns(kit, 1)
    assert(end !== undefined, 'one end')
    const keys = [
      { tenant: null, jobName: null },
      { tenant: null, jobName: 'mail' },
      { tenant: '', jobName: null },
      { tenant: 'a', jobName: null },
      { tenant: 'a', jobName: 'mail' },
    ]
    assert(
      await fold(
        kit,
        [null, end],
        keys.map((key, index) => row({ ...key, completed: index + 1 })),
      ),
      'kept',
    )
    for (const [index, key] of keys.entries()) {
      assertEqual(
        await hoursOf(kit, key),
        [row({ ...key, completed: index + 1 })],
        `the hour of ${JSON.stringify(key)}`,
      )
    }
    assertEqual(await hoursOf(kit, { tenant: 'b' }), [], 'the hours of another tenant')
  },

  'of several that count the same ends one is kept': async (kit) => {
    const ends = await endedRuns(kit, 4)
    const folds = ends.map((end, index) => fold(kit, [null, end], [row({ completed: index + 1 })]))
    const kept = await Promise.all(folds)
    assertEqual(kept.filter(Boolean).length, 1, 'folds kept')
    assertEqual(await hoursOf(kit), [row({ completed: kept.indexOf(true) + 1 })], 'the hour')
    const [first] = ends
    assert(first !== undefined, 'an end')
    assertEqual(await fold(kit, [null, first], [row({ completed: 9 })]), false, 'a fold from where nobody is any more')
    assertEqual(await hoursOf(kit), [row({ completed: kept.indexOf(true) + 1 })], 'the hour after it')
  },

  'what was counted is there after a purge and a kill, until it is forgotten': async (kit) => {
    const [end] = await endedRuns(kit, 1)
    assert(end !== undefined, 'one end')
    const counted = [row({ completed: 1, durations: { 3: 1 } }), row({ hour: NEXT_HOUR, started: 1 })]
    await fold(kit, [null, end], counted)
    await kit.storage.purge({ statuses: ['completed'], limit: 10 })
    await kit.reopen()
    assertEqual(await hoursOf(kit), counted, 'the hours')
    assertEqual((await statistics(kit).ends(ALL)).from, placeOf(end), 'where counting is')
    const query = { tenant: null, jobName: null, from: HOUR, before: NEXT_HOUR }
    assertEqual((await statistics(kit).hours(query)).countedUntil, end.finishedAt, 'counted until')
    await statistics(kit).forget(NEXT_HOUR)
    assertEqual(await hoursOf(kit), counted.slice(1), 'the hours that are left')
  },
})
