import { NotFoundError } from '@coji/durably-core'
import type {
  AuditEntry,
  AuditReads,
  CountFilter,
  Log,
  Run,
  RunCursor,
  RunFilter,
  RunReads,
  Statistics,
  StatusCounts,
  Step,
  StoredEvent,
} from '@coji/durably-core'
import type { Transport } from './transport'

/** How many runs there are of each status. */
export interface CountedRuns {
  readonly counts: StatusCounts
  /** Counted no further: a number that is this one means "at least so many". */
  readonly upTo: number
}

/** Pages are read until there are as many as were asked for, or no more. */
interface Page<TItem> {
  readonly items: readonly TItem[]
  readonly next: string | number | null
}

interface Wanted<TItem> {
  readonly limit: number | undefined
  readonly from: string | number | undefined
  read(from: string | number | undefined, limit: number | undefined): Promise<Page<TItem>>
}

async function readAll<TItem>({ limit, from, read }: Wanted<TItem>): Promise<TItem[]> {
  const all: TItem[] = []
  for (let place = from; ; ) {
    const page = await read(place, limit === undefined ? undefined : limit - all.length)
    all.push(...page.items)
    if (page.next === null || all.length === limit) return all
    place = page.next
  }
}

/** What is not there is `null` or empty, as it is for the engine. */
async function orElse<T>(nothing: T, find: () => Promise<T>): Promise<T> {
  try {
    return await find()
  } catch (error) {
    if (error instanceof NotFoundError) return nothing
    throw error
  }
}

/** No address has these for a part: they would be another address. */
const NO_PARTS = ['', '.', '..']

export function pathOf(id: string, part = ''): string {
  if (NO_PARTS.includes(id)) throw NotFoundError.run(id)
  return `/runs/${encodeURIComponent(id)}${part}`
}

/** Counting, and how far. */
export interface CountReads {
  /** As `counts()`, and how far the server counted. */
  countRuns(filter?: CountFilter): Promise<CountedRuns>
}

export function createReads(transport: Transport): RunReads & AuditReads & CountReads {
  const countRuns = async (filter: CountFilter = {}): Promise<CountedRuns> => {
    const { upTo, ...counts } = await transport.get<StatusCounts & { upTo: number }>('/stats', { ...filter })
    return { counts, upTo }
  }
  return {
    getRun: (id) => orElse<Run | null>(null, () => transport.get<Run>(pathOf(id))),
    getRuns: ({ limit, cursor, ...filter }: RunFilter = {}) =>
      readAll<Run>({
        limit,
        from: cursor === undefined || typeof cursor === 'string' ? cursor : placeOf(cursor),
        async read(from, size) {
          const query = { ...filter, cursor: from, limit: size }
          const { runs, next } = await transport.get<{ runs: Run[]; next: string | null }>('/runs', query)
          return { items: runs, next }
        },
      }),
    async getSteps(id) {
      const { steps } = await orElse({ steps: [] }, () => transport.get<{ steps: Step[] }>(pathOf(id, '/steps')))
      return steps
    },
    getLogs: (id, { after, limit } = {}) =>
      readAll<Log>({
        limit,
        from: after,
        async read(from, size) {
          const find = () =>
            transport.get<{ logs: Log[]; next: string | null }>(pathOf(id, '/logs'), {
              after: from,
              limit: size,
            })
          const { logs, next } = await orElse({ logs: [], next: null }, find)
          return { items: logs, next }
        },
      }),
    getEvents: (id, { after, limit } = {}) =>
      readAll<StoredEvent>({
        limit,
        from: after,
        async read(from, size) {
          const query = { after: from, limit: size }
          const find = () =>
            transport.get<{ events: StoredEvent[]; next: number | null }>(pathOf(id, '/history'), query)
          const { events, next } = await orElse({ events: [], next: null }, find)
          return { items: events, next }
        },
      }),
    getAudit: ({ limit, cursor, ...filter } = {}) =>
      readAll<AuditEntry>({
        limit,
        from: cursor === undefined ? undefined : `${cursor.at}~${cursor.id}`,
        async read(from, size) {
          const query = { ...filter, cursor: from, limit: size }
          const { entries, next } = await transport.get<{ entries: AuditEntry[]; next: string | null }>('/audit', query)
          return { items: entries, next }
        },
      }),
    countRuns,
    counts: async (filter) => (await countRuns(filter)).counts,
    getStatistics: (filter = {}) => transport.get<Statistics>('/stats/history', { ...filter }),
    async explain(id) {
      try {
        return (await transport.get<{ explanation: string }>(pathOf(id, '/explanation'))).explanation
      } catch (error) {
        if (error instanceof NotFoundError) return error.message
        throw error
      }
    },
  }
}

function placeOf({ createdAt, id }: RunCursor): string {
  return `${createdAt}~${id}`
}
