import type { AuditCursor, Run, RunCursor, RunFilter } from '@coji/durably-core'
import type { z } from 'zod'
import type { Access } from './access'
import { HttpProblem } from './problem'
import type { Call, RunCall } from './route'
import type { Server } from './server'
import type {
  auditListQuerySchema,
  countQuerySchema,
  eventListQuerySchema,
  logListQuerySchema,
  runListQuerySchema,
  statisticsQuerySchema,
} from './wire'

/** So many where nobody says how many. */
const PAGE = 50

/** A part of a list, and where the next one begins: `null` when there is none. */
interface Page<TItem, TPlace> {
  readonly items: readonly TItem[]
  readonly next: TPlace | null
}

/** One more is read than is given, to know whether there is one. A page is never longer than the server's limit. */
export async function readPage<TItem, TPlace>(
  { settings }: Server,
  wanted: number | undefined,
  { read, placeOf }: { read(limit: number): Promise<readonly TItem[]>; placeOf(item: TItem): TPlace },
): Promise<Page<TItem, TPlace>> {
  if (wanted === 0) throw new HttpProblem('INVALID_REQUEST', 'limit must be from 1.')
  const size = Math.min(wanted ?? PAGE, settings.maxPageSize)
  const found = await read(size + 1)
  const items = found.slice(0, size)
  const last = items.at(-1)
  return { items, next: found.length > size && last !== undefined ? placeOf(last) : null }
}

interface RunPageQuery extends RunFilter {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** A page of runs, newest first. */
export async function readRuns({ access, server }: Call, { cursor, limit, ...filter }: RunPageQuery) {
  const place = cursor === undefined ? {} : { cursor: toCursor(cursor) }
  return readPage(server, limit, {
    read: async (size) => (isForeign(access, filter) ? [] : access.runs.getRuns({ ...filter, ...place, limit: size })),
    placeOf,
  })
}

/** Whose runs one sees is for the tenant to say, and whose one asks for is another matter. */
function isForeign(access: Access, { tenant }: Pick<RunFilter, 'tenant'>): boolean {
  return access.tenant !== null && tenant !== undefined && tenant !== access.tenant
}

/** `GET /runs` */
export async function listRuns(call: Call<z.output<typeof runListQuerySchema>>) {
  const { items, next } = await readRuns(call, call.query)
  return { runs: items.map((run) => call.server.present.run(run)), next }
}

/** `GET /runs/:id/logs` */
export async function listLogs({ access, server, run, query }: RunCall<z.output<typeof logListQuerySchema>>) {
  const { items, next } = await readPage(server, query.limit, {
    read: (limit) => access.runs.getLogs(run.id, { after: query.after, limit }),
    placeOf: ({ id }) => id,
  })
  return { logs: items.map((log) => server.present.log(log, run)), next }
}

/** `GET /runs/:id/history` */
export async function listEvents({ access, server, run, query }: RunCall<z.output<typeof eventListQuerySchema>>) {
  const { items, next } = await readPage(server, query.limit, {
    read: (limit) => access.runs.getEvents(run.id, { after: query.after, limit }),
    placeOf: ({ seq }) => seq,
  })
  return { events: items.map((event) => server.present.event(event, run)), next }
}

/** `GET /audit` */
export async function listAudit({ access, server, query }: Call<z.output<typeof auditListQuerySchema>>) {
  const { limit, cursor, ...filter } = query
  const place = cursor === undefined ? {} : { cursor: toAuditCursor(cursor) }
  const { items, next } = await readPage(server, limit, {
    read: async (size) => (isForeign(access, filter) ? [] : access.runs.getAudit({ ...filter, ...place, limit: size })),
    placeOf: ({ at, id }) => `${at}${SEPARATOR}${id}`,
  })
  return { entries: items, next }
}

/** The engine says so of what is no cursor. */
function toAuditCursor(text: string): AuditCursor {
  const [at = '', id = ''] = text.split(SEPARATOR)
  return { at, id }
}

/** Nobody waits for a number that nobody reads to the last digit: so far everything is counted. */
const MOST_COUNTED = { ofTenant: 10_000, ofOthers: 1000 } as const

/** An index has each status of a tenant, and of all. With other conditions runs may have to be looked at one by one. */
export function mostCounted({ tenant: _, ...conditions }: RunFilter): number {
  const isByTenant = Object.values(conditions).every((each) => each === undefined)
  return isByTenant ? MOST_COUNTED.ofTenant : MOST_COUNTED.ofOthers
}

/** `GET /stats` */
export async function countRuns({ access, query }: Call<z.output<typeof countQuerySchema>>) {
  const { upTo: wanted = Number.POSITIVE_INFINITY, ...filter } = query
  if (wanted === 0) throw new HttpProblem('INVALID_REQUEST', 'upTo must be from 1.')
  const upTo = Math.min(wanted, mostCounted(filter))
  const scope = isForeign(access, filter) ? { status: [] } : {}
  const counts = await access.runs.counts({ ...filter, ...scope, upTo })
  return { ...counts, upTo }
}

/** As if nobody had counted anything of it. */
const NO_TIME = { from: new Date(0), before: new Date(0) }

/** `GET /stats/history` */
export async function readHistory({ access, query }: Call<z.output<typeof statisticsQuerySchema>>) {
  return access.runs.getStatistics(isForeign(access, query) ? { ...query, ...NO_TIME } : query)
}

const SEPARATOR = '~'

function placeOf({ createdAt, id }: Run): string {
  return `${createdAt}${SEPARATOR}${id}`
}

/** The engine says so of what is no cursor. */
function toCursor(text: string): RunCursor | string {
  const [createdAt, id] = text.split(SEPARATOR)
  return createdAt === undefined || id === undefined ? text : { createdAt, id }
}
