export interface PageSleepParams {
  readonly onSleep: () => void
  readonly onAwake: () => void
}

/**
 * Whether the page is awake. One that is frozen, or kept in the cache of pages, runs nothing and keeps what it has open:
 * whatever others wait for has to be let go of in its last moment, `onSleep`.
 */
export class PageSleep {
  readonly #params: PageSleepParams
  #over: Promise<void> | null = null
  #wake: () => void = () => {}

  constructor(params: PageSleepParams) {
    this.#params = params
    // A worker has no such moments of its own.
    if (typeof document === 'undefined') return
    document.addEventListener('freeze', this.#begin)
    document.addEventListener('resume', this.#end)
    addEventListener('pagehide', this.#begin)
    addEventListener('pageshow', this.#end)
  }

  /** Resolves when the page is awake again; `null` while it is. */
  get over(): Promise<void> | null {
    return this.#over
  }

  stop(): void {
    this.#end()
    if (typeof document === 'undefined') return
    document.removeEventListener('freeze', this.#begin)
    document.removeEventListener('resume', this.#end)
    removeEventListener('pagehide', this.#begin)
    removeEventListener('pageshow', this.#end)
  }

  readonly #begin = () => {
    if (this.#over !== null) return
    this.#over = new Promise((resolve) => {
      this.#wake = resolve
    })
    this.#params.onSleep()
  }

  readonly #end = () => {
    if (this.#over === null) return
    this.#over = null
    this.#params.onAwake()
    this.#wake()
  }
}
