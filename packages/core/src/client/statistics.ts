import {
  type Environment,
  type Histogram,
  InvalidOptionError,
  type OptionNames,
  percentileOf,
  refuseUnknownOptions,
  toInstant,
} from '../base'
import { addCounts, capability, type HourCounts, type Instant, type Storage } from '../port'
import { instantIn } from './run-search'

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
  const points = new Map<Instant, HourCounts>()
  let total = NOTHING
  for (const hour of hours) {
    const at = floored(hour.hour, ms)
    points.set(at, addCounts(points.get(at) ?? NOTHING, hour))
    total = addCounts(total, hour)
  }
  return {
    countedUntil,
    points: [...points].map(([at, counts]) => ({ at, ...shown(counts) })),
    total: shown(total),
  }
}

const NOTHING: HourCounts = {
  started: 0,
  completed: 0,
  failed: 0,
  timedOut: 0,
  cancelled: 0,
  durations: {},
  waits: {},
}

function floored(instant: Instant, ms: number): Instant {
  const at = Date.parse(instant)
  return toInstant(at - (((at % ms) + ms) % ms))
}

function shown({ started, completed, failed, timedOut, cancelled, durations, waits }: HourCounts): StatisticsCounts {
  const counts = { started, completed, failed, timedOut, cancelled }
  return { ...counts, duration: percentilesOf(durations), queueLatency: percentilesOf(waits) }
}

function percentilesOf(histogram: Histogram): Percentiles | null {
  const at = (share: number) => percentileOf(histogram, share) ?? 0
  if (Object.keys(histogram).length === 0) return null
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
