import type { Log } from '@coji/durably-core'
import { coalesce } from './coalesce'
import { Kept, type Observed } from './observed'
import type { RunApi } from './run-api'
import { delayAfter, isWithoutHistory, toError } from './trouble'
import type { WatchedRun } from './watched-run'

const READ_EVERY_MS = 100
const PAGE = 500

/** What a run has logged. */
export interface LogsView {
  /** In the order in which they were written. */
  readonly logs: readonly Log[]
  /** They have not been read yet. */
  readonly isLoading: boolean
  /** Reading fails; what is shown is what was read before. */
  readonly trouble: Error | null
}

export const NO_LOGS_YET: LogsView = { logs: [], isLoading: true, trouble: null }
export const NO_LOGS: LogsView = { ...NO_LOGS_YET, isLoading: false }

/** The logs of one run; what is known already is not read again. */
export class RunLogs implements Observed<LogsView> {
  readonly #api: RunApi
  readonly #runId: string
  readonly #view: Kept<LogsView>
  readonly #refresh = coalesce(READ_EVERY_MS, () => this.#read())
  #failures = 0

  constructor(api: RunApi, runId: string, watched: WatchedRun) {
    this.#api = api
    this.#runId = runId
    this.#view = new Kept<LogsView>(NO_LOGS_YET, () => {
      const stopHearing = watched.onEvent((event) => {
        if (event === null || event.type === 'log:write') this.#refresh.soon()
      })
      const stopWatching = watched.subscribe(() => {})
      this.#refresh.now()
      return () => {
        stopHearing()
        stopWatching()
        this.#refresh.callOff()
      }
    })
  }

  readonly get = (): LogsView => this.#view.get()
  readonly subscribe = (listener: () => void): (() => void) => this.#view.subscribe(listener)

  get isKept(): boolean {
    return this.#view.isKept
  }

  close(): void {
    this.#view.close()
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        const { logs } = this.#view.get()
        const after = logs.at(-1)?.id
        const page = await this.#api.getLogs(this.#runId, { ...(after !== undefined && { after }), limit: PAGE })
        this.#failures = 0
        const isSame = page.length === 0 && this.#view.get().trouble === null && !this.#view.get().isLoading
        if (!isSame) this.#view.set({ logs: [...logs, ...page], isLoading: false, trouble: null })
        if (page.length < PAGE || !this.isKept) return
      }
    } catch (error) {
      this.#failures += 1
      this.#view.set({ ...this.#view.get(), isLoading: false, trouble: toError(error) })
      // A storage that keeps no logs will not keep any later.
      if (this.isKept && !isWithoutHistory(error))
        setTimeout(() => this.isKept && this.#refresh.soon(), delayAfter(this.#failures))
    }
  }
}
