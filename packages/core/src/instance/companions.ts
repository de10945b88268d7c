import type { Durably } from './api'
import type { Plugin, StartedTerm, Uninstall } from './plugin'

type Companion = Required<Pick<Plugin, 'whileStarted'>>

/** What plugins do beside the worker, from `start()` to `stop()`. */
export class Companions {
  readonly #all: Companion[] = []
  #started: { readonly durably: Durably; readonly term: StartedTerm; readonly end: () => void } | null = null
  #uninstalls: Uninstall[] = []

  /** One that comes late begins at once. */
  add(plugin: Plugin): void {
    if (plugin.whileStarted === undefined) return
    this.#all.push(plugin as Companion)
    if (this.#started === null) return
    const { durably, term } = this.#started
    this.#uninstalls.push(plugin.whileStarted(durably, term))
  }

  start(durably: Durably): void {
    if (this.#started !== null) return
    let end = () => {}
    const workerStopped = new Promise<void>((resolve) => {
      end = resolve
    })
    const term: StartedTerm = { workerStopped }
    this.#started = { durably, term, end }
    this.#uninstalls = this.#all.map((companion) => companion.whileStarted(durably, term))
  }

  /** The last one first. `onError` hears of those that fail. Answers how to tell that the worker has stopped. */
  stop(onError: (error: unknown) => void): { readonly left: Promise<void>; workerStopped(): void } {
    const uninstalls = this.#uninstalls
    const started = this.#started
    this.#started = null
    this.#uninstalls = []
    return { left: uninstallAll(uninstalls, onError), workerStopped: () => started?.end() }
  }
}

async function uninstallAll(uninstalls: readonly Uninstall[], onError: (error: unknown) => void): Promise<void> {
  for (const uninstall of [...uninstalls].reverse()) {
    try {
      await uninstall()
    } catch (error) {
      onError(error)
    }
  }
}
