import { RUN_STATUSES } from '../lifecycle'
import type { RunStatus } from '../lifecycle'
import type { CountQuery, RunRecord, StatusCounts } from '../storage'

type Counts = Record<RunStatus, number>

interface Group {
  readonly tenant: string
  readonly jobName: string
  /** Of those that wait for a retry, and of the others. */
  readonly retrying: Counts
  readonly others: Counts
  total: number
}

/** How many runs are in which state and wait for a retry or not, kept as they change, for each job of each tenant. */
export class StatusCounter {
  readonly #groups = new Map<string, Group>()

  add(record: RunRecord): void {
    const group = this.#groupOf(record)
    countsFor(group, record)[record.status] += 1
    group.total += 1
  }

  remove(record: RunRecord): void {
    const group = this.#groupOf(record)
    countsFor(group, record)[record.status] -= 1
    group.total -= 1
    if (group.total === 0) this.#groups.delete(groupName(record))
  }

  move(before: RunRecord, after: RunRecord): void {
    if (before.status === after.status && waitsForRetry(before) === waitsForRetry(after)) return
    const group = this.#groupOf(after)
    countsFor(group, before)[before.status] -= 1
    countsFor(group, after)[after.status] += 1
  }

  sum(query: CountQuery): StatusCounts {
    const sum = noCounts()
    const jobNames = query.jobNames && new Set(query.jobNames)
    for (const { tenant, jobName, retrying, others } of this.#groups.values()) {
      if (query.tenant !== undefined && query.tenant !== tenant) continue
      if (jobNames !== undefined && !jobNames.has(jobName)) continue
      if (query.waitsForRetry !== false) addTo(sum, retrying)
      if (query.waitsForRetry !== true) addTo(sum, others)
    }
    return sum
  }

  #groupOf({ tenant, jobName }: RunRecord): Group {
    const name = groupName({ tenant, jobName })
    const group = this.#groups.get(name) ?? { tenant, jobName, retrying: noCounts(), others: noCounts(), total: 0 }
    this.#groups.set(name, group)
    return group
  }
}

export function waitsForRetry({ waitingFor }: RunRecord): boolean {
  return waitingFor?.kind === 'retry'
}

function countsFor({ retrying, others }: Group, record: RunRecord): Counts {
  return waitsForRetry(record) ? retrying : others
}

function addTo(sum: Counts, counts: Counts): void {
  for (const status of RUN_STATUSES) sum[status] += counts[status]
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
  }
}
