import {
  type Environment,
  HistogramSum,
  instantIn,
  InvalidOptionError,
  type OptionNames,
  refuseUnknownOptions,
  toInstant,
} from '../base'
import { capability, type HourCounts, type Instant, type Storage } from '../port'

/** Of which runs and of which time. */
export interface StatisticsFilter {
  /** From the hour, or day, of this instant on. Default: a day ago. */
  readonly from?: Date | string | undefined
  /** Up to this instant. Default: now. */
  readonly before?: Date | string | undefined
  /** Of one job. Default: of all together. */
  readonly jobName?: string | undefined
  /** Of one tenant. Default: of all together. */
  readonly tenant?: string | undefined
  /** What one point stands for: an hour (the default) or a day, which begins at midnight UTC. */
  readonly interval?: 'hour' | 'day' | undefined
}

/** Milliseconds that half of all, 95 % and 99 % are not above, each within 9 %. */
export interface Percentiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** What happened to runs in a time. Runs count once they have ended. */
export interface StatisticsCounts {
  readonly started: number
  readonly completed: number
  readonly failed: number
  readonly timedOut: number
  readonly cancelled: number
  /** From the first start to the end, waits included, of runs that completed then; `null` without any. */
  readonly duration: Percentiles | null
  /** From being due to the first start, of runs that started then and did not wait afterwards; `null` without any. */
  readonly queueLatency: Percentiles | null
}

/** An hour or a day. */
export interface StatisticsPoint extends StatisticsCounts {
  /** Its first instant. */
  readonly at: string
}

/** What `withStatistics()` has counted. */
export interface Statistics {
  /** All runs that ended until then are counted; `null` where nobody counts. */
  readonly countedUntil: string | null
  /** In their order, without those in which nothing happened. */
  readonly points: readonly StatisticsPoint[]
  /** All of the time together. */
  readonly total: StatisticsCounts
}

const FILTER: OptionNames<StatisticsFilter> = {
  from: true,
  before: true,
  jobName: true,
  tenant: true,
  interval: true,
}

const HOUR_MS = 3_600_000
const INTERVALS = { hour: HOUR_MS, day: 24 * HOUR_MS } as const

interface StatisticsParams {
  readonly storage: Storage
  readonly environment: Environment
  readonly filter: StatisticsFilter
}

export async function readStatistics({ storage, environment, filter }: StatisticsParams): Promise<Statistics> {
  refuseUnknownOptions('getStatistics()', filter, FILTER)
  const group = capability(storage, 'statistics', 'getStatistics()')
  const { interval = 'hour', jobName = null, tenant = null } = filter
  if (!Object.hasOwn(INTERVALS, interval)) {
    throw new InvalidOptionError(`interval must be 'hour' or 'day', not ${String(interval)}.`)
  }
  const ms = INTERVALS[interval]
  const now = environment.clock.now()
  const from = floored(instantIn('from', filter.from ?? new Date(now - INTERVALS.day)), ms)
  const before = instantIn('before', filter.before ?? new Date(now))
  const { countedUntil, hours } = await group.hours({ tenant, jobName, from, before })
  const points = new Map<Instant, CountsSum>()
  const total = new CountsSum()
  for (const hour of hours) {
    const at = interval === 'hour' ? hour.hour : floored(hour.hour, ms)
    const point = points.get(at) ?? new CountsSum()
    points.set(at, point)
    point.add(hour)
  }
  // Of some sums rather than of every hour once more.
  for (const point of points.values()) total.addSum(point)
  return {
    countedUntil,
    points: [...points].map(([at, point]) => ({ at, ...point.shown() })),
    total: total.shown(),
  }
}

class CountsSum {
  started = 0
  completed = 0
  failed = 0
  timedOut = 0
  cancelled = 0
  readonly durations = new HistogramSum()
  readonly waits = new HistogramSum()

  add(hour: HourCounts): void {
    this.#count(hour)
    this.durations.add(hour.durations)
    this.waits.add(hour.waits)
  }

  addSum(other: CountsSum): void {
    this.#count(other)
    this.durations.addSum(other.durations)
    this.waits.addSum(other.waits)
  }

  #count({ started, completed, failed, timedOut, cancelled }: Omit<HourCounts, 'durations' | 'waits'>): void {
    this.started += started
    this.completed += completed
    this.failed += failed
    this.timedOut += timedOut
    this.cancelled += cancelled
  }

  shown(): StatisticsCounts {
    const { started, completed, failed, timedOut, cancelled } = this
    const times = { duration: percentilesOf(this.durations), queueLatency: percentilesOf(this.waits) }
    return { started, completed, failed, timedOut, cancelled, ...times }
  }
}

function floored(instant: Instant, ms: number): Instant {
  const at = Date.parse(instant)
  return toInstant(at - (((at % ms) + ms) % ms))
}

function percentilesOf(sum: HistogramSum): Percentiles | null {
  const found = sum.percentiles([0.5, 0.95, 0.99])
  return found === null ? null : { p50: found[0], p95: found[1], p99: found[2] }
}
