import type { Durably, DurablyEvent, WorkerSwitch } from '@coji/durably-core'
import { startBeat, type Beat } from './tab-beat'
import { createTabLock } from './tab-lock'
import { isForeign } from './tab-relay'

export interface TabLeadershipParams {
  readonly worker: WorkerSwitch
  readonly durably: Durably
  /** Of the Web Lock and of the channel of the beats. */
  readonly name: string
  readonly beatMs: number
  readonly silenceMs: number
  readonly onLeadership: ((isLeader: boolean) => void) | undefined
}

const DURING = 'tab leader'

/** What other tabs do that gives the leader something to run. */
const WORK = ['run:trigger', 'run:retry', 'run:signal', 'run:unpark', 'run:release', 'run:recover'] as const

/** One tab's part in it: it waits for the lock, and runs the worker while it holds it. */
export class TabLeadership {
  readonly #params: TabLeadershipParams
  readonly #lock
  readonly #beat: Beat
  readonly #offs: readonly (() => void)[]
  readonly #over: Promise<void>
  #leads = false
  #ended = false
  #steals = false
  #recovering: Promise<void> | null = null

  constructor(params: TabLeadershipParams) {
    const { durably, name, beatMs, silenceMs } = params
    this.#params = params
    this.#lock = createTabLock(name)
    this.#beat = startBeat({
      channelName: name,
      everyMs: beatMs,
      silenceMs,
      isLeader: () => this.#leads,
      onBeat: () => void this.#recoverOthers(),
      onSilence: () => this.#steal(),
    })
    this.#offs = WORK.map((type) => durably.on(type, (event) => this.#noteWork(event)))
    this.#over = this.#takePart()
  }

  /** Resolves when the lock is free for the next tab. */
  async end(): Promise<void> {
    this.#ended = true
    for (const off of this.#offs) off()
    this.#beat.end()
    this.#lock.release()
    this.#tell(false)
    await this.#over
  }

  async #takePart(): Promise<void> {
    while (!this.#ended) {
      const steal = this.#steals
      this.#steals = false
      try {
        const end = await this.#lock.hold({ steal, onHeld: () => void this.#lead() })
        if (end !== 'stolen') continue
        this.#tell(false)
        await this.#params.worker.stop({ timeout: 0 })
      } catch (error) {
        this.#params.durably.reportError(error, DURING)
        return
      }
    }
  }

  async #lead(): Promise<void> {
    this.#tell(true)
    this.#beat.send()
    await this.#recoverOthers()
    if (this.#leads) this.#params.worker.start()
  }

  /** Gives the waiting up and asks for the lock in another way. */
  #steal(): void {
    this.#steals = true
    this.#lock.release()
  }

  /**
   * There is one leader, so nobody else who owns a run is alive, or may be. Looked for with every beat: what a dying tab
   * had sent can arrive after the first look.
   */
  #recoverOthers(): Promise<void> {
    this.#recovering ??= this.#takeFromOthers().finally(() => {
      this.#recovering = null
    })
    return this.#recovering
  }

  async #takeFromOthers(): Promise<void> {
    const { durably } = this.#params
    try {
      const { workerId } = durably.health()
      const running = await durably.getRuns({ status: 'running' })
      const owners = new Set(running.flatMap(({ ownerId }) => ownerId ?? []))
      owners.delete(workerId)
      for (const owner of owners) if (this.#leads) await durably.recover({ workerId: owner })
    } catch (error) {
      if (!this.#ended) durably.reportError(error, DURING)
    }
  }

  #noteWork(event: DurablyEvent): void {
    if (this.#leads && isForeign(event)) this.#params.worker.start()
  }

  #tell(leads: boolean): void {
    if (this.#leads === leads) return
    this.#leads = leads
    try {
      this.#params.onLeadership?.(leads)
    } catch (error) {
      this.#params.durably.reportError(error, 'onLeadership')
    }
  }
}
