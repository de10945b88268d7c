import { coalesce } from './coalesce'
import type { RunEvent } from './live-run'
import { Kept, type Observed } from './observed'
import { delayAfter, isWithoutHistory, toError } from './trouble'
import type { WatchedRun } from './watched-run'

const READ_EVERY_MS = 100
const PAGE = 500

/** A list of which only the end changes. */
export interface ListView<T> {
  readonly items: readonly T[]
  /** It has not been read yet. */
  readonly isLoading: boolean
  /** Reading fails; the items are those that were read before. */
  readonly trouble: Error | null
}

export const NOT_READ_YET: ListView<never> = { items: [], isLoading: true, trouble: null }
export const NOTHING_TO_READ: ListView<never> = { ...NOT_READ_YET, isLoading: false }

export interface GrowingListParams<T> {
  readonly run: WatchedRun
  /** The items after this one, so many at most. */
  readonly read: (last: T | undefined, limit: number) => Promise<readonly T[]>
  /** After this event there may be more of them. */
  readonly growsBy: (event: RunEvent) => boolean
}

/** What a run has more and more of. What is known already is not read again. */
export class GrowingList<T> implements Observed<ListView<T>> {
  readonly #readAfter: GrowingListParams<T>['read']
  readonly #view: Kept<ListView<T>>
  readonly #refresh = coalesce(READ_EVERY_MS, () => this.#read())
  #failures = 0

  constructor({ run, read, growsBy }: GrowingListParams<T>) {
    this.#readAfter = read
    this.#view = new Kept<ListView<T>>(NOT_READ_YET, () => {
      const stopHearing = run.onEvent((event) => {
        if (event === null || growsBy(event)) this.#refresh.soon()
      })
      const stopWatching = run.subscribe(() => {})
      this.#refresh.now()
      return () => {
        stopHearing()
        stopWatching()
        this.#refresh.callOff()
      }
    })
  }

  readonly get = (): ListView<T> => this.#view.get()
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
        const { items, isLoading, trouble } = this.#view.get()
        const page = await this.#readAfter(items.at(-1), PAGE)
        this.#failures = 0
        const isSame = page.length === 0 && !isLoading && trouble === null
        if (!isSame) this.#view.set({ items: [...items, ...page], isLoading: false, trouble: null })
        if (page.length < PAGE || !this.isKept) return
      }
    } catch (error) {
      this.#failures += 1
      this.#view.set({ ...this.#view.get(), isLoading: false, trouble: toError(error) })
      // A storage that keeps none will not keep any later.
      if (this.isKept && !isWithoutHistory(error))
        setTimeout(() => this.isKept && this.#refresh.soon(), delayAfter(this.#failures))
    }
  }
}
