import {
  addCounts,
  type CountedUntil,
  type Fold,
  type HourQuery,
  type HourRow,
  hourName,
  type RunEnd,
  type RunRecord,
  type StatisticsStorage,
} from '../port'
import { isBefore } from './in-order'
import type { Operations } from './cluster'
import type { Memory } from './memory'

/** What was counted, and how far. */
export class HourTable {
  readonly rows = new Map<string, HourRow>()
  countedUntil: CountedUntil | null = null
}

export function createStatistics(memory: Memory, { read, write }: Operations): StatisticsStorage {
  const { hours } = memory
  return {
    ends: ({ limit, lagMs }) =>
      read(() => ({ from: hours.countedUntil, ends: endsAfter(memory, lagMs).slice(0, limit) })),
    fold: (fold) => write(() => apply(hours, fold)),
    hours: (query) => read(() => ({ countedUntil: hours.countedUntil?.finishedAt ?? null, hours: find(hours, query) })),
    forget: (before) =>
      write(() => {
        for (const [name, { hour }] of hours.rows) if (hour < before) hours.rows.delete(name)
      }),
  }
}

function endsAfter({ table, clock, hours: { countedUntil } }: Memory, lagMs: number): readonly RunEnd[] {
  const until = clock.in(-lagMs)
  const isNext = ({ runId, finishedAt }: RunEnd) => {
    const isAfter =
      countedUntil === null || isBefore([countedUntil.finishedAt, countedUntil.runId], [finishedAt, runId])
    return isAfter && finishedAt <= until
  }
  const ends = [...table.all()].flatMap(({ record }) => (record.finishedAt === null ? [] : [endOf(record)]))
  return ends.filter(isNext).sort((a, b) => (isBefore([a.finishedAt, a.runId], [b.finishedAt, b.runId]) ? -1 : 1))
}

function endOf(record: RunRecord): RunEnd {
  const { id, tenant, jobName, status, attemptBase, availableAt, startedAt, finishedAt } = record
  return { runId: id, tenant, jobName, status, attemptBase, availableAt, startedAt, finishedAt: finishedAt ?? '' }
}

function apply(hours: HourTable, { from, to, rows }: Fold): boolean {
  const { countedUntil } = hours
  if (countedUntil?.finishedAt !== from?.finishedAt || countedUntil?.runId !== from?.runId) return false
  for (const row of rows) {
    const before = hours.rows.get(hourName(row))
    hours.rows.set(hourName(row), before === undefined ? row : addCounts(before, row))
  }
  hours.countedUntil = to
  return true
}

function find({ rows }: HourTable, { tenant, jobName, from, before }: HourQuery): readonly HourRow[] {
  return [...rows.values()]
    .filter((row) => row.tenant === tenant && row.jobName === jobName && row.hour >= from && row.hour < before)
    .sort((a, b) => (a.hour < b.hour ? -1 : 1))
}
