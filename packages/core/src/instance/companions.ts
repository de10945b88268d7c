import type { Durably } from './api'
import type { Plugin, Uninstall } from './plugin'

type Companion = Required<Pick<Plugin, 'whileStarted'>>

/** What plugins do beside the worker, from `start()` to `stop()`. */
export class Companions {
  readonly #all: Companion[] = []
  #started: Durably | null = null
  #endings: Uninstall[] = []

  /** One that comes late begins at once. */
  add(plugin: Plugin): void {
    if (plugin.whileStarted === undefined) return
    this.#all.push(plugin as Companion)
    if (this.#started !== null) this.#endings.push(plugin.whileStarted(this.#started))
  }

  start(durably: Durably): void {
    if (this.#started !== null) return
    this.#started = durably
    this.#endings = this.#all.map((companion) => companion.whileStarted(durably))
  }

  /** The last one first. `onError` hears of those that fail. */
  async stop(onError: (error: unknown) => void): Promise<void> {
    const endings = this.#endings
    this.#started = null
    this.#endings = []
    for (const end of endings.reverse()) {
      try {
        await end()
      } catch (error) {
        onError(error)
      }
    }
  }
}
