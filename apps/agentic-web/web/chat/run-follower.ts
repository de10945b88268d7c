import { piecesOf } from '../../src/pieces'
import type { Events } from '../api/run-source'
import { wordsFor } from '../api/request'
import { whileVisible } from '../api/visible'
import { applyPiece, isOver, NOT_BEGUN, type RunProgress } from './progress'

export interface Followed {
  /** `null` until it is known how far it has come. */
  readonly progress: RunProgress | null
  /** Why it is not followed any further. */
  readonly trouble: string | null
}

type Follow = (after: number, signal: AbortSignal) => Events

/** Words that come one by one are shown so many milliseconds' worth at once. */
const GATHER_MS = 40
/** What is already stored comes at once: it is shown when nothing more has come for a moment, and not built up again. */
const QUIET_MS = 60
const LONGEST_QUIET_MS = 500

const NOTHING: Followed = { progress: null, trouble: null }

/** A run as its events tell it. However often the connection is lost, each event counts once, and what is shown stays. */
export class RunFollower {
  readonly #follow: Follow
  readonly #listeners = new Set<() => void>()
  #shown: Followed = NOTHING
  #progress: RunProgress = NOT_BEGUN
  #seen = 0
  #leave = () => {}
  #adopted: Events | null = null
  #following: AbortSignal | null = null
  #isWantedAgain = false
  #begunAt = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(follow: Follow) {
    this.#follow = follow
  }

  readonly get = (): Followed => this.#shown

  /** It is followed while somebody listens, and the page can be seen. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#leave = this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#leave()
    }
  }

  /** Its first events come with the answer to a request that was made anyway. */
  adopt(events: Events): void {
    this.#adopted = events
  }

  /** A run that had ended goes on, since somebody wanted it to: maybe before the connection that told of its end is closed. */
  goOn(): void {
    if (this.#listeners.size === 0 || !isOver(this.#progress)) return
    this.#isWantedAgain = this.#following !== null
    if (this.#isWantedAgain) return
    this.#leave()
    this.#leave = this.#start()
  }

  #start(): () => void {
    return whileVisible(() => {
      const end = new AbortController()
      void this.#read(end.signal)
      return () => end.abort()
    })
  }

  async #read(signal: AbortSignal): Promise<void> {
    this.#following = signal
    this.#begunAt = performance.now()
    try {
      const isWhole = await this.#takeAdopted(signal)
      if (!isWhole && !signal.aborted) await this.#take(this.#follow(this.#seen, signal), signal)
      if (!signal.aborted) this.#show(null)
    } catch (error) {
      if (!signal.aborted) this.#show(wordsFor(error))
    } finally {
      if (this.#following === signal) this.#following = null
    }
    if (!this.#isWantedAgain || signal.aborted) return
    this.#isWantedAgain = false
    this.goOn()
  }

  /** Whether it came to its end: what was cut off can be asked for. */
  async #takeAdopted(signal: AbortSignal): Promise<boolean> {
    const adopted = this.#adopted
    this.#adopted = null
    if (adopted === null) return false
    return this.#take(adopted, signal).then(
      () => !signal.aborted,
      () => false,
    )
  }

  async #take(events: Events, signal: AbortSignal): Promise<void> {
    for await (const event of events) {
      if (signal.aborted) return
      if (event.seq <= this.#seen) continue
      this.#seen = event.seq
      const before = this.#progress
      this.#progress = piecesOf(event).reduce(applyPiece, this.#progress)
      if (this.#progress !== before) this.#showSoon()
    }
  }

  #showSoon(): void {
    if (this.#shown.progress !== null) {
      this.#timer ??= setTimeout(() => this.#show(null), GATHER_MS)
      return
    }
    clearTimeout(this.#timer)
    const left = this.#begunAt + LONGEST_QUIET_MS - performance.now()
    this.#timer = setTimeout(() => this.#show(null), Math.min(QUIET_MS, Math.max(0, left)))
  }

  #show(trouble: string | null): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#shown = { progress: this.#progress, trouble }
    for (const listener of [...this.#listeners]) listener()
  }
}
