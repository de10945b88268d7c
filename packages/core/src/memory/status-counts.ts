import type { CountQuery, RunRecord, StatusCounts } from '../port'
import { RUN_STATUSES } from '../base'

type Counts = { -readonly [Name in keyof StatusCounts]: number }

/** What a run is counted by. */
type Counted = Pick<RunRecord, 'status' | 'waitingFor'>

interface Group {
  readonly tenant: string
  readonly jobName: string
  readonly counts: Counts
  total: number
}

/** How many runs are in which state, and how many wait for a retry or are parked, kept as they change, for each job of each tenant. */
export class StatusCounter {
  readonly #groups = new Map<string, Group>()
  /** Many changes one after the other are of one job. */
  #last: Group | null = null

  add(record: RunRecord): void {
    const group = this.#groupOf(record)
    addTo(group.counts, record, 1)
    group.total += 1
  }

  remove(record: RunRecord): void {
    const group = this.#groupOf(record)
    addTo(group.counts, record, -1)
    group.total -= 1
    if (group.total === 0) this.#groups.delete(groupName(record))
  }

  /** Where a run is counted, to be told when it has changed. */
  countedAs({ status, waitingFor }: RunRecord): Counted {
    return { status, waitingFor }
  }

  moveFrom(before: Counted, after: RunRecord): void {
    if (before.status === after.status && kindOfWait(before) === kindOfWait(after)) return
    const { counts } = this.#groupOf(after)
    addTo(counts, before, -1)
    addTo(counts, after, 1)
  }

  sum(query: Pick<CountQuery, 'tenant' | 'jobNames'>): StatusCounts {
    const sum = noCounts()
    const jobNames = query.jobNames && new Set(query.jobNames)
    for (const { tenant, jobName, counts } of this.#groups.values()) {
      if (query.tenant !== undefined && query.tenant !== tenant) continue
      if (jobNames !== undefined && !jobNames.has(jobName)) continue
      for (const status of RUN_STATUSES) sum[status] += counts[status]
      sum.waitsForRetry += counts.waitsForRetry
      sum.parked += counts.parked
    }
    return sum
  }

  #groupOf({ tenant, jobName }: RunRecord): Group {
    const last = this.#last
    if (last !== null && last.jobName === jobName && last.tenant === tenant && last.total > 0) return last
    const name = groupName({ tenant, jobName })
    const group = this.#groups.get(name) ?? { tenant, jobName, counts: noCounts(), total: 0 }
    this.#groups.set(name, group)
    this.#last = group
    return group
  }
}

export function waitsForRetry({ waitingFor }: Counted): boolean {
  return waitingFor?.kind === 'retry'
}

export function isParked({ waitingFor }: Counted): boolean {
  return waitingFor?.kind === 'unpark'
}

function kindOfWait({ waitingFor }: Counted): string | undefined {
  return waitingFor?.kind
}

/** One by one, where it is about more than job and tenant. */
export function countOf(records: Iterable<RunRecord>): StatusCounts {
  const counts = noCounts()
  for (const record of records) addTo(counts, record, 1)
  return counts
}

function addTo(counts: Counts, record: Counted, change: 1 | -1): void {
  counts[record.status] += change
  if (waitsForRetry(record)) counts.waitsForRetry += change
  if (isParked(record)) counts.parked += change
}

function groupName({ tenant, jobName }: { readonly tenant: string; readonly jobName: string }): string {
  return `${tenant.length}:${tenant}${jobName}`
}

function noCounts(): Counts {
  return {
    pending: 0,
    assigned: 0,
    running: 0,
    completed: 0,
    failed: 0,
    timed_out: 0,
    cancelled: 0,
    orphaned: 0,
    waitsForRetry: 0,
    parked: 0,
  }
}
