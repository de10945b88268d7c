/** A message to SQLite takes milliseconds. Who keeps its turn for longer is frozen, or at something big. */
const LONGEST_TURN_MS = 1000

/**
 * Lets the tabs of one origin use a file in turns. Only one of them can have it open for a moment, and SQLite's OPFS
 * layer waits for the others in naps of 300 ms and more; a Web Lock hands the file over at once. It is a courtesy and
 * guards nothing: a turn that takes too long is taken away, and what meets then is sorted out by SQLite.
 */
export class TabTurns {
  readonly #name: string | null
  /** Ends the turn, or the waiting for it. A connection has one at a time. */
  #letGo: () => void = () => {}

  /** `null` for a database that no other tab has. */
  constructor(file: string | null) {
    this.#name = file === null || globalThis.navigator?.locks === undefined ? null : `durably:file:${file}`
  }

  /** Resolves with how to end the turn, or with `null` when it was let go of before it came. */
  async take(): Promise<(() => void) | null> {
    if (this.#name === null) return NO_TURN
    const waiting = new AbortController()
    let isLetGo = false
    this.#letGo = () => {
      isLetGo = true
      waiting.abort()
    }
    const impatience = setTimeout(() => waiting.abort(), LONGEST_TURN_MS)
    try {
      return this.#begin(await hold(this.#name, { signal: waiting.signal }))
    } catch {
      if (isLetGo) return null
      if (!waiting.signal.aborted) return NO_TURN
      return hold(this.#name, { steal: true }).then(
        (end) => this.#begin(end),
        () => NO_TURN,
      )
    } finally {
      clearTimeout(impatience)
    }
  }

  /** Before the page is put to sleep: others would wait for it, in vain. */
  letGo(): void {
    this.#letGo()
  }

  #begin(end: () => void): () => void {
    this.#letGo = end
    return end
  }
}

/** A page that may not use locks (a sandboxed frame) has to do without. */
const NO_TURN = () => {}

function hold(name: string, options: LockOptions): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const held = () => new Promise<void>((release) => resolve(release))
    // Rejects before the lock is held, and when it is taken away later: then nobody listens.
    navigator.locks.request(name, options, held).catch(reject)
  })
}
