import type { Run } from '@coji/durably-core'
import { followRun, hearInstance } from './follow-run'
import type { RunEvent } from './live-run'
import type { RunApi } from './run-api'
import type { RunHints } from './run-hints'

export interface RunTailParams {
  readonly api: RunApi
  readonly hints: RunHints
  readonly runId: string
  /** The number of the last event that was heard. */
  readonly heardUpTo: () => number
  readonly onEvent: (event: RunEvent) => void
  /** The connection is lost, so often in a row. */
  readonly onTrouble: (failures: number) => void
  /** There is no more to hear: the run ended, or is gone, or nobody keeps its history. */
  readonly onEnd: () => void
}

/** Who tells of a run: its history, over any number of connections; else the instance itself; and hints, while nobody does. */
export class RunTail {
  readonly #params: RunTailParams
  #follower: AbortController | null = null
  #hearsInstance: (() => void) | null = null
  #hintsWanted: (() => void) | null = null
  #hasHistory = true
  #trouble: Error | null = null

  constructor(params: RunTailParams) {
    this.#params = params
  }

  /** Its events come from its history, or will when the connection is back. */
  get isFollowing(): boolean {
    return this.#follower !== null
  }

  /** What happens is heard when it happens. */
  get isHearing(): boolean {
    const isConnected = this.#follower !== null && this.#trouble === null && this.#params.heardUpTo() > 0
    return isConnected || this.#hearsInstance !== null
  }

  /** As far as is known. */
  get hasHistory(): boolean {
    return this.#hasHistory
  }

  get trouble(): Error | null {
    return this.#trouble
  }

  /** Hears of this run what is to be heard, as it was read. */
  attend({ id, finishedAt, lastEventSequence }: Run): void {
    if (finishedAt !== null) {
      if (lastEventSequence <= this.#params.heardUpTo()) this.#stop()
    } else if (this.#hasHistory) {
      this.follow()
    } else {
      this.#hearsInstance ??= hearInstance(this.#params.api, id, (event) => this.#params.onEvent(event))
    }
    this.#wantHints()
  }

  /** Hears its history to the end. */
  follow(): void {
    if (this.#follower !== null) return
    this.#follower = new AbortController()
    void this.#follow(this.#follower)
  }

  /** There is no such run; there may be one later. */
  attendNothing(): void {
    this.#stop()
    this.#wantHints()
  }

  rest(): void {
    this.#stop()
    this.#hintsWanted?.()
    this.#hintsWanted = null
  }

  async #follow(follower: AbortController): Promise<void> {
    const { api, runId, heardUpTo, onEvent, onTrouble, onEnd } = this.#params
    const hasHistory = await followRun({
      api,
      runId,
      signal: follower.signal,
      heardUpTo,
      onEvent: (event) => {
        this.#trouble = null
        onEvent(event)
      },
      onTrouble: (error, failures) => {
        this.#trouble = error
        onTrouble(failures)
      },
    })
    if (this.#follower !== follower) return
    this.#stop()
    this.#hasHistory = hasHistory
    this.#wantHints()
    onEnd()
  }

  #stop(): void {
    this.#follower?.abort()
    this.#follower = null
    this.#trouble = null
    this.#hearsInstance?.()
    this.#hearsInstance = null
  }

  /** A run that is followed has one connection, and needs no other. */
  #wantHints(): void {
    if (this.#follower === null) this.#hintsWanted ??= this.#params.hints.want()
    else {
      this.#hintsWanted?.()
      this.#hintsWanted = null
    }
  }
}
