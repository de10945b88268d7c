import type { Run } from '@coji/durably-core'
import { LiveRead, UNREAD, type ReadView } from './live-read'
import { Kept, type Observed } from './observed'
import type { RunApi, RunListFilter } from './run-api'
import type { RunHints } from './run-hints'

/** The newest runs that a filter finds. */
export interface RunListView {
  /** Newest first. */
  readonly runs: readonly Run[]
  /** There are more: `showMore()` brings them. */
  readonly hasMore: boolean
  /** They have not been read yet. */
  readonly isLoading: boolean
  /** Reading fails, and is tried again; the runs are those that were read before. */
  readonly trouble: Error | null
}

export const NO_RUNS_YET: RunListView = { runs: [], hasMore: false, isLoading: true, trouble: null }

export interface RunListParams {
  readonly api: RunApi
  readonly hints: RunHints
  readonly filter: RunListFilter
  readonly pageSize: number
}

/** A list of runs from its top, as far as somebody wanted to see. */
export class RunList implements Observed<RunListView> {
  readonly #pageSize: number
  readonly #read: LiveRead<readonly Run[]>
  readonly #view: Kept<RunListView>
  #limit: number

  constructor({ api, hints, filter, pageSize }: RunListParams) {
    this.#pageSize = pageSize
    this.#limit = pageSize
    // One more than is shown tells whether there are more.
    this.#read = new LiveRead(hints, () => api.getRuns({ ...filter, limit: this.#limit + 1 }))
    this.#view = new Kept<RunListView>(NO_RUNS_YET, () =>
      this.#read.subscribe(() => this.#view.set(toList(this.#read.get(), this.#limit))),
    )
  }

  readonly get = (): RunListView => this.#view.get()
  readonly subscribe = (listener: () => void): (() => void) => this.#view.subscribe(listener)

  get isKept(): boolean {
    return this.#view.isKept
  }

  readonly showMore = (): void => {
    if (!this.#view.get().hasMore) return
    this.#limit += this.#pageSize
    this.#read.refresh()
  }

  readonly refresh = (): void => this.#read.refresh()

  close(): void {
    this.#view.close()
    this.#read.close()
  }
}

function toList({ value, isLoading, trouble }: ReadView<readonly Run[]> = UNREAD, limit: number): RunListView {
  const runs = value ?? []
  return { runs: runs.slice(0, limit), hasMore: runs.length > limit, isLoading, trouble }
}
