import type { Clock, Durably, StopOptions } from '../index'
import { QueueStoppedError } from './errors'
import type { Retention } from './retention'

const AGAIN_MS = 1000

export interface QueueSwitchParams {
  readonly durably: Durably
  readonly retention: Retention
  readonly clock: Clock
}

/** Starts and stops a queue, and prepares its storage before anything else. */
export class QueueSwitch {
  readonly #params: QueueSwitchParams
  #state: 'new' | 'started' | 'stopped' = 'new'
  #prepared: Promise<void> | null = null
  #callOffTry: () => void = () => {}

  constructor(params: QueueSwitchParams) {
    this.#params = params
  }

  /** Resolves when the storage has what it needs. Each call tries until one has succeeded. */
  prepared(): Promise<void> {
    this.#prepared ??= this.#params.durably.migrate().catch((error: unknown) => {
      this.#prepared = null
      throw error
    })
    return this.#prepared
  }

  requireOpen(): void {
    if (this.#state === 'stopped') throw new QueueStoppedError()
  }

  start(): void {
    if (this.#state === 'started') return
    this.#state = 'started'
    void this.#startWhenPrepared()
  }

  async stop(options?: StopOptions): Promise<void> {
    this.#state = 'stopped'
    this.#callOffTry()
    this.#params.retention.stop()
    await this.#params.durably.stop(options)
  }

  /** A database that is away does not keep a queue from starting later. */
  async #startWhenPrepared(): Promise<void> {
    const { durably, retention, clock } = this.#params
    try {
      await this.prepared()
    } catch (error) {
      durably.reportError(error, 'migrate')
      if (this.#state === 'started') this.#callOffTry = clock.schedule(AGAIN_MS, () => void this.#startWhenPrepared())
      return
    }
    if (this.#state !== 'started') return
    durably.start()
    retention.start()
  }
}
