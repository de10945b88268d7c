import type { Engine } from '../engine'
import {
  decodeValue,
  InvalidOptionError,
  type OptionNames,
  refuseUnknownOptions,
  requireBoolean,
  requireInteger,
  RUN_STATUSES,
  type RunStatus,
  isInstant,
  isStorableText,
  refuseBadText,
  requireLabels,
} from '../base'
import { readLogs } from './archived-logs'
import { continuationStateOf, explainRun, type WorkerNow } from './explain'
import { type Run, type Step, type StoredEvent, toRun, toStep, toStoredEvent } from '../job'
import { readStatistics, type Statistics, type StatisticsFilter } from './statistics'
import { RUN_SEARCH, type RunSearch, toSearch } from './run-search'
import {
  capability,
  type CountQuery,
  type RunCursor,
  type RunQuery,
  type StatusCounts,
  type Scope,
  type Storage,
} from '../port'
import { withLogs } from './stored-logs'

/** Which runs `getRuns()` returns: those that meet every condition. */
export interface RunFilter extends RunSearch {
  /** One status, or any of several. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined
  /** One job, or any of several. */
  readonly jobName?: string | readonly string[] | undefined
  /** Those that wait for a retry of their own, or those that do not. One that is due waits until it is claimed. */
  readonly waitsForRetry?: boolean | undefined
  /** Those that are parked until `unpark()` or `failParked()`, or those that are not. */
  readonly parked?: boolean | undefined
  /** Of this tenant only. */
  readonly tenant?: string | undefined
  /** All of these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** So many at most. Default: all. */
  readonly limit?: number | undefined
  /** The last run of the page before: the page goes on even if that was deleted meanwhile. Or its id while it is there. */
  readonly cursor?: string | RunCursor | undefined
}

/** Which runs `counts()` counts: those that meet every condition. */
export interface CountFilter extends Omit<RunFilter, 'limit' | 'cursor'> {
  /** Counts no further, which is quicker: a number that is this one means "at least so many". Default: all. */
  readonly upTo?: number | undefined
}

/** A part of a long list. */
export interface PageOptions<TCursor> {
  /** The last one of the page before: the `seq` of an event, the `id` of a log. Default: from the beginning. */
  readonly after?: TCursor | undefined
  /** So many at most. */
  readonly limit?: number | undefined
}

/** A line that a job logged. */
export interface Log {
  readonly id: string
  readonly runId: string
  readonly stepName: string | null
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly data: unknown
  readonly timestamp: string
}

/** Reading runs. What is not there is `null` or `[]`. */
export interface RunReads {
  getRun(id: string): Promise<Run | null>
  /** Newest first. Everything that matches, unless limited. */
  getRuns(filter?: RunFilter): Promise<Run[]>
  getSteps(id: string): Promise<Step[]>
  getLogs(id: string, page?: PageOptions<string>): Promise<Log[]>
  getEvents(id: string, page?: PageOptions<number>): Promise<StoredEvent[]>
  /** How many there are of each status, and of the pending ones how many wait for a retry: at one moment, unless `upTo` is given. */
  counts(filter?: CountFilter): Promise<StatusCounts>
  /** What `withStatistics()` has counted by the hour: how many ended how, how long they took, how long they waited. */
  getStatistics(filter?: StatisticsFilter): Promise<Statistics>
  /** In words: what the run is doing, or what it is waiting for. */
  explain(id: string): Promise<string>
}

const CONDITIONS = {
  ...RUN_SEARCH,
  jobName: true,
  tenant: true,
  status: true,
  waitsForRetry: true,
  parked: true,
  labels: true,
} as const
const COUNT_FILTER: OptionNames<CountFilter> = { ...CONDITIONS, upTo: true }
export const RUN_FILTER: OptionNames<RunFilter> = { ...CONDITIONS, limit: true, cursor: true }
const PAGE: OptionNames<PageOptions<unknown>> = { after: true, limit: true }

/** `tenant` limits everything to it, whatever a filter says. */
export function createRunReads(engine: Engine, worker: WorkerNow, tenant?: string): RunReads {
  const { storage } = engine
  const scope = tenant === undefined ? {} : { tenant }
  const find = async (id: string) => (isId(id) ? storage.getRun(id, scope) : null)
  return {
    async getRun(id) {
      const run = await find(id)
      return run === null ? null : toRun(run, continuationStateOf(engine, run))
    },
    async getRuns(filter = {}) {
      refuseUnknownOptions('getRuns()', filter, RUN_FILTER)
      const query = { ...toQuery(filter), ...scope }
      const { cursor } = filter
      const place = cursor === undefined ? {} : { cursor: await toCursor(storage, cursor, query) }
      return (await storage.getRuns({ ...query, ...place })).map((run) => toRun(run, continuationStateOf(engine, run)))
    },
    async getSteps(id) {
      return isId(id) ? (await storage.getSteps(id, scope)).map(toStep) : []
    },
    async getLogs(id, page = {}) {
      const group = capability(storage, 'logs', 'getLogs()')
      const part = toPage('getLogs()', page)
      if (part.after !== undefined && typeof part.after !== 'string') {
        throw new InvalidOptionError(`after must be the id of a log, not ${String(part.after)}.`)
      }
      const logs = isId(id) ? await readLogs(engine, group, { runId: id, scope, part }) : []
      return logs.map((log) => ({ ...log, data: decodeValue(log.data) }))
    },
    async getEvents(id, page = {}) {
      const group = capability(storage, 'events', 'getEvents()')
      const part = toPage('getEvents()', page)
      if (part.after !== undefined) refuseBadSeq(part.after)
      const run = await find(id)
      if (run === null) return []
      const events = await group.getEvents(id, { ...part, ...scope })
      return (await withLogs(engine, events)).map((event) => toStoredEvent(event, run))
    },
    async counts(filter = {}) {
      refuseUnknownOptions('counts()', filter, COUNT_FILTER)
      return storage.counts({ ...toCountQuery(filter), ...scope })
    },
    getStatistics: async (filter = {}) =>
      readStatistics({ storage, environment: engine.environment, filter: { ...filter, ...scope } }),
    async explain(id) {
      const run = await find(id)
      return run === null
        ? `There is no run ${id}. It may have been deleted or purged.`
        : explainRun(engine, worker, run)
    },
  }
}

/** Databases read what is no number each in its own way. */
export function refuseBadSeq(after: number): void {
  if (Number.isSafeInteger(after) && after >= 0) return
  throw new InvalidOptionError(`after must be the seq of an event, or 0, not ${String(after)}.`)
}

/** What a route without its parameter hands over is the id of no run, nor is what no database keeps. */
export function isId(id: unknown): id is string {
  return typeof id === 'string' && isStorableText(id)
}

function toQuery({ jobName, tenant, status, waitsForRetry, parked, labels, limit, ...search }: RunFilter): RunQuery {
  const statuses = status === undefined ? undefined : [...new Set(listOf(status))]
  const unknown = statuses?.find((each) => !RUN_STATUSES.includes(each))
  if (unknown !== undefined) {
    throw new InvalidOptionError(`"${unknown}" is not a status. There are ${RUN_STATUSES.join(', ')}.`)
  }
  refuseBadText('tenant', tenant)
  for (const name of jobName === undefined ? [] : listOf(jobName)) refuseBadText('jobName', name ?? null)
  if (labels !== undefined) requireLabels(labels, 'A filter')
  for (const [name, given] of Object.entries({ waitsForRetry, parked })) {
    if (given !== undefined) requireBoolean(name, given)
  }
  if (search.waitsFor !== undefined && (waitsForRetry !== undefined || parked !== undefined)) {
    throw new InvalidOptionError('Give either waitsFor, or waitsForRetry and parked, not both.')
  }
  return {
    ...(jobName !== undefined && { jobNames: listOf(jobName) }),
    ...(tenant !== undefined && { tenant }),
    ...toSearch(search),
    ...(statuses !== undefined && { statuses }),
    ...(waitsForRetry !== undefined && { waitsForRetry }),
    ...(parked !== undefined && { parked }),
    ...(labels !== undefined && { labels }),
    ...(limit !== undefined && { limit: refuseBadLimit(limit) }),
  }
}

function toCountQuery({ upTo, ...filter }: CountFilter): CountQuery {
  return { ...toQuery(filter), ...(upTo !== undefined && { upTo: refuseBadLimit(upTo, 'upTo') }) }
}

export function listOf<T>(oneOrMany: T | readonly T[]): readonly T[] {
  return Array.isArray(oneOrMany) ? (oneOrMany as readonly T[]) : [oneOrMany as T]
}

function toPage<TCursor>(call: string, page: PageOptions<TCursor>) {
  refuseUnknownOptions(call, page, PAGE)
  const { after, limit } = page
  return {
    ...(after !== undefined && { after }),
    ...(limit !== undefined && { limit: refuseBadLimit(limit) }),
  }
}

function refuseBadLimit(limit: number, name = 'limit'): number {
  requireInteger(name, limit, { from: 1 })
  return limit
}

/** The place where the next page begins. A run says itself where it was; an id has to be looked up. */
export async function toCursor(storage: Storage, cursor: unknown, { tenant }: Scope): Promise<RunCursor> {
  if (typeof cursor !== 'string') return placeOf(cursor)
  const run = await storage.getRun(cursor, tenant === undefined ? {} : { tenant })
  if (run !== null) return { createdAt: run.createdAt, id: run.id }
  throw new InvalidOptionError(
    `There is no run ${cursor} (any more) for the cursor. Start again without one, or give the run itself.`,
  )
}

function placeOf(run: unknown): RunCursor {
  const { createdAt, id } = Object(run) as Readonly<Record<keyof RunCursor, unknown>>
  if (typeof id === 'string' && isInstant(createdAt)) return { createdAt, id }
  throw new InvalidOptionError('cursor must be the last run of the page before, or its id.')
}
