import type { Log, StoredEvent, TriggeredRun } from '@coji/durably-core'
import { GrowingList, type ListView, NOT_READ_YET } from './growing-list'
import { LiveRead, UNREAD, type ReadView } from './live-read'
import type { Observed } from './observed'
import type { PageTriggerOptions, RunApi, RunListFilter } from './run-api'
import { RunHints } from './run-hints'
import { NO_RUNS_YET, RunList, type RunListView } from './run-list'
import { RunStream, streamOf, type StreamView } from './run-stream'
import { LOADING, type RunView } from './run-view'
import { WatchedRun } from './watched-run'

const PAGE_SIZE = 50
/** So many are remembered after the last look at them, so that who comes back sees at once what was there. */
const REMEMBERED = 100

/** A list of runs with what can be asked of it. */
export interface ObservedRunList extends Observed<RunListView> {
  showMore(): void
}

/** How long a list is. */
export interface RunListOptions {
  /** So many runs at first, and so many more each time. Default 50. */
  readonly pageSize?: number | undefined
}

/** What pages show of runs: each thing is read and followed once, however many show it, while somebody listens. */
export interface RunStore {
  readonly api: RunApi
  run(id: string): Observed<RunView>
  runs(filter?: RunListFilter, options?: RunListOptions): ObservedRunList
  /** In the order in which they were written. */
  logs(id: string): Observed<ListView<Log>>
  /** Those that are stored. */
  events(id: string): Observed<ListView<StoredEvent>>
  /** Of the step of this name, or of the stream that began last. */
  stream(id: string, stepName?: string): Observed<StreamView>
  /** Anything else about runs, read again whenever they change. What has the same key is the same. */
  read<T>(key: string, read: () => Promise<T>): Observed<ReadView<T>>
  trigger(jobName: string, payload?: unknown, options?: PageTriggerOptions): Promise<TriggeredRun>
  cancel(id: string): Promise<void>
  retry(id: string): Promise<void>
  signal(id: string, name: string, payload?: unknown): Promise<void>
  deleteRun(id: string): Promise<void>
  /** Everything that is shown is read again. */
  refresh(): void
  /** Nothing is followed any more. */
  close(): void
}

interface Entry<T> extends Observed<T> {
  readonly isKept: boolean
  close(): void
}

/** Entries by what they are about. One that nobody has listened to is not remembered. */
class Entries {
  readonly #byKey = new Map<string, Entry<unknown>>()

  get<T extends Entry<unknown>>(key: string): T | undefined {
    return this.#byKey.get(key) as T | undefined
  }

  /** The one there is, or a new one. */
  use<T extends Entry<unknown>>(key: string, create: () => T): T {
    const entry = this.get<T>(key) ?? create()
    this.#byKey.delete(key)
    this.#byKey.set(key, entry)
    this.#forgetOldest()
    return entry
  }

  close(): void {
    for (const entry of this.#byKey.values()) entry.close()
    this.#byKey.clear()
  }

  #forgetOldest(): void {
    for (const [key, entry] of this.#byKey) {
      if (this.#byKey.size <= REMEMBERED) return
      if (!entry.isKept) this.#byKey.delete(key)
    }
  }
}

/** The framework-free part of the hooks: on an instance in this tab, or on a client over HTTP. */
export function createRunStore(api: RunApi): RunStore {
  const hints = new RunHints(api)
  const entries = new Entries()
  const watched = (id: string) => entries.use(`run ${id}`, () => new WatchedRun({ api, hints, runId: id }))
  /** Nothing is made before somebody listens: who only renders, as on a server, leaves nothing behind. */
  const observed = <T, E extends Entry<T>>(key: string, initial: T, create: () => E): Observed<T> => ({
    get: () => entries.get<E>(key)?.get() ?? initial,
    subscribe: (listener) => entries.use(key, create).subscribe(listener),
  })
  const growing = <T>(key: string, create: () => GrowingList<T>) =>
    observed<ListView<T>, GrowingList<T>>(key, NOT_READ_YET, create)
  const changed = (runId: string) => hints.tell({ runId, isUrgent: true })
  return {
    api,
    run: (id) => observed<RunView, WatchedRun>(`run ${id}`, LOADING, () => watched(id)),
    runs(filter = {}, { pageSize = PAGE_SIZE } = {}) {
      const key = `runs ${pageSize} ${stableKey(filter)}`
      const create = () => new RunList({ api, hints, filter, pageSize })
      const list = observed<RunListView, RunList>(key, NO_RUNS_YET, create)
      return { ...list, showMore: () => entries.get<RunList>(key)?.showMore() }
    },
    logs: (id) => growing(`logs ${id}`, () => logsOf(api, id, watched(id))),
    events: (id) => growing(`events ${id}`, () => eventsOf(api, id, watched(id))),
    stream(id, stepName) {
      const key = `stream ${id} ${stepName === undefined ? '' : JSON.stringify(stepName)}`
      return observed<StreamView, RunStream>(key, NO_STREAM_YET, () => new RunStream(watched(id), stepName))
    },
    read: <T>(key: string, read: () => Promise<T>) =>
      observed<ReadView<T>, LiveRead<T>>(`read ${key}`, UNREAD, () => new LiveRead(hints, read)),
    async trigger(jobName, payload, options) {
      const run = await api.trigger(jobName, payload, options)
      watched(run.id).seed(run)
      hints.tell({ runId: run.id, isUrgent: true })
      return run
    },
    async cancel(id) {
      await api.cancel(id)
      changed(id)
    },
    async retry(id) {
      await api.retry(id)
      changed(id)
    },
    async signal(id, name, payload) {
      await api.signal(id, name, payload)
      changed(id)
    },
    async deleteRun(id) {
      await api.deleteRun(id)
      changed(id)
    },
    refresh: () => hints.tell({ runId: null, isUrgent: true }),
    close: () => entries.close(),
  }
}

const NO_STREAM_YET = streamOf(LOADING, undefined)

function logsOf(api: RunApi, id: string, run: WatchedRun): GrowingList<Log> {
  return new GrowingList<Log>({
    run,
    growsBy: ({ type }) => type === 'log:write',
    read: (last, limit) => api.getLogs(id, last === undefined ? { limit } : { after: last.id, limit }),
  })
}

function eventsOf(api: RunApi, id: string, run: WatchedRun): GrowingList<StoredEvent> {
  return new GrowingList<StoredEvent>({
    run,
    growsBy: () => true,
    read: (last, limit) => api.getEvents(id, last === undefined ? { limit } : { after: last.seq, limit }),
  })
}

/** The same for the same conditions, whatever their order. */
function stableKey(filter: RunListFilter): string {
  return JSON.stringify(filter, (_key, value: unknown) =>
    value instanceof Object && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}
