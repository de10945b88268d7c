/** A message to SQLite takes milliseconds. Who keeps its turn for longer is frozen, or at something big. */
const LONGEST_TURN_MS = 1000

/**
 * Lets the tabs of one origin use a file in turns. Only one of them can have it open for a moment, and SQLite's OPFS
 * layer waits for the others in naps of 300 ms and more; a Web Lock hands the file over at once. It is a courtesy and
 * guards nothing: a turn that takes too long is taken away, and what meets then is sorted out by SQLite.
 */
export class TabTurns {
  readonly #name: string | null

  /** `null` for a database that no other tab has. */
  constructor(file: string | null) {
    this.#name = file === null || globalThis.navigator?.locks === undefined ? null : `durably:file:${file}`
  }

  /** Resolves with how to end the turn. */
  async take(): Promise<() => void> {
    if (this.#name === null) return NO_TURN
    try {
      return await hold(this.#name, { signal: AbortSignal.timeout(LONGEST_TURN_MS) })
    } catch (error) {
      if (!isTimeout(error)) return NO_TURN
      return hold(this.#name, { steal: true }).catch(() => NO_TURN)
    }
  }
}

/** A page that may not use locks (a sandboxed frame) has to do without. */
const NO_TURN = () => {}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError'
}

function hold(name: string, options: LockOptions): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const held = () => new Promise<void>((release) => resolve(release))
    // Rejects before the lock is held, and when it is taken away later: then nobody listens.
    navigator.locks.request(name, options, held).catch(reject)
  })
}
