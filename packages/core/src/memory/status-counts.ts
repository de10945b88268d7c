import { RUN_STATUSES } from '../lifecycle'
import type { RunStatus } from '../lifecycle'
import type { RunRecord, StatusCounts } from '../storage'

type Counts = Record<RunStatus, number>

interface Group {
  readonly tenant: string
  readonly jobName: string
  readonly counts: Counts
  total: number
}

/** How many runs are in which state, kept as they change, for each job of each tenant. */
export class StatusCounter {
  readonly #groups = new Map<string, Group>()

  add(record: RunRecord): void {
    const group = this.#groupOf(record)
    group.counts[record.status] += 1
    group.total += 1
  }

  remove(record: RunRecord): void {
    const group = this.#groupOf(record)
    group.counts[record.status] -= 1
    group.total -= 1
    if (group.total === 0) this.#groups.delete(groupName(record))
  }

  move(before: RunRecord, after: RunRecord): void {
    if (before.status === after.status) return
    const { counts } = this.#groupOf(after)
    counts[before.status] -= 1
    counts[after.status] += 1
  }

  sum(query: { readonly tenant?: string; readonly jobName?: string }): StatusCounts {
    const sum = noCounts()
    for (const { tenant, jobName, counts } of this.#groups.values()) {
      if (query.tenant !== undefined && query.tenant !== tenant) continue
      if (query.jobName !== undefined && query.jobName !== jobName) continue
      for (const status of RUN_STATUSES) sum[status] += counts[status]
    }
    return sum
  }

  #groupOf({ tenant, jobName }: RunRecord): Group {
    const name = groupName({ tenant, jobName })
    const group = this.#groups.get(name) ?? { tenant, jobName, counts: noCounts(), total: 0 }
    this.#groups.set(name, group)
    return group
  }
}

function groupName({ tenant, jobName }: { readonly tenant: string; readonly jobName: string }): string {
  return JSON.stringify([tenant, jobName])
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
