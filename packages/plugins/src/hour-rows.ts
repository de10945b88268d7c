import {
  addCounts,
  bucketOf,
  type HourCounts,
  type HourKey,
  hourName,
  type HourRow,
  type RunEnd,
} from '@coji/durably-core/extend'

const HOUR_MS = 3_600_000

const NOTHING: HourCounts = {
  started: 0,
  completed: 0,
  failed: 0,
  timedOut: 0,
  cancelled: 0,
  durations: {},
  waits: {},
}

const COUNT_OF = { completed: 'completed', failed: 'failed', timed_out: 'timedOut', cancelled: 'cancelled' } as const

/** What these ends add to the hours: to those of their job and tenant, of each of the two alone, and of all. */
export function hourRowsOf(ends: readonly RunEnd[]): readonly HourRow[] {
  const own = new Rows()
  for (const end of ends) {
    own.add({ ...keyOf(end), hour: hourOf(end.finishedAt) }, endCounts(end))
    // It began anew with a retry by hand, for which nobody knows when it was due.
    if (end.startedAt !== null && end.attemptBase === 0) {
      own.add({ ...keyOf(end), hour: hourOf(end.startedAt) }, startCounts(end, end.startedAt))
    }
  }
  const all = new Rows()
  for (const row of own.list()) {
    const { hour, tenant, jobName, ...counts } = row
    for (const key of [row, { hour, tenant, jobName: null }, { hour, tenant: null, jobName }, TOTAL]) {
      all.add({ hour, tenant: key.tenant, jobName: key.jobName }, counts)
    }
  }
  return all.list()
}

const TOTAL = { tenant: null, jobName: null } as const

class Rows {
  readonly #byName = new Map<string, HourRow>()

  add(key: HourKey, counts: HourCounts): void {
    const name = hourName(key)
    this.#byName.set(name, addCounts(this.#byName.get(name) ?? { ...key, ...NOTHING }, counts))
  }

  list(): readonly HourRow[] {
    return [...this.#byName.values()]
  }
}

function keyOf({ tenant, jobName }: RunEnd): Pick<HourKey, 'tenant' | 'jobName'> {
  return { tenant, jobName }
}

function endCounts({ status, startedAt, finishedAt }: RunEnd): HourCounts {
  const counted = { ...NOTHING, [COUNT_OF[status as keyof typeof COUNT_OF]]: 1 }
  return status === 'completed' && startedAt !== null
    ? { ...counted, durations: { [bucketOf(msBetween(startedAt, finishedAt))]: 1 } }
    : counted
}

/** A run that waited after its start was made due anew: when it was due at first is not known any more. */
function startCounts({ availableAt }: RunEnd, startedAt: string): HourCounts {
  const isKnown = availableAt !== null && availableAt <= startedAt
  return { ...NOTHING, started: 1, waits: isKnown ? { [bucketOf(msBetween(availableAt, startedAt))]: 1 } : {} }
}

function msBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from))
}

export function hourOf(instant: string): string {
  return new Date(Math.floor(Date.parse(instant) / HOUR_MS) * HOUR_MS).toISOString()
}
