import { type Clock, ClosedError, DurablyError } from '../base'
import { requireStopOptions, type StopOptions } from '../engine'
import type { Durably } from '../instance'
import type { Retention } from './retention'
import type { PauseOptions } from '../client'
import type { Handlers } from './handlers'

const AGAIN_MS = 1000

export interface QueueSwitchParams {
  readonly durably: Durably
  readonly retention: Retention
  readonly clock: Clock
}

/** Starts and stops a queue, and prepares its storage before anything else. */
export class QueueSwitch {
  readonly #params: QueueSwitchParams
  #state: 'new' | 'started' | 'stopping' | 'stopped' | 'closed' = 'new'
  #prepared: Promise<void> | null = null
  #isPrepared = false
  #callOffTry: () => void = () => {}

  constructor(params: QueueSwitchParams) {
    this.#params = params
  }

  /** Resolves when the storage has what it needs. Each call tries until one has succeeded. */
  prepared(): Promise<void> {
    this.#prepared ??= this.#prepare().catch((error: unknown) => {
      this.#prepared = null
      throw error
    })
    return this.#prepared
  }

  get isPrepared(): boolean {
    return this.#isPrepared
  }

  async #prepare(): Promise<void> {
    await this.#params.durably.migrate()
    this.#isPrepared = true
  }

  /** While it stops, a task in progress may still lead to others. */
  requireOpen(): void {
    if (this.#state === 'closed') throw new ClosedError()
    if (this.#state === 'stopped') throw new QueueStoppedError()
  }

  start(): void {
    if (this.#state === 'closed') throw new ClosedError()
    if (this.#state === 'started') return
    this.#state = 'started'
    void this.#startWhenPrepared()
  }

  stop(options: StopOptions = {}): Promise<void> {
    const stopped = this.#stop(options)
    // A handler is refused, and need not have awaited it.
    stopped.catch(() => {})
    return stopped
  }

  async #stop(options: StopOptions): Promise<void> {
    const { timeout } = requireStopOptions(options)
    const { durably, retention } = this.#params
    const before = this.#state
    if (before === 'new' || before === 'started') this.#state = 'stopping'
    this.#callOffTry()
    retention.stop()
    try {
      await durably.stop(timeout === undefined ? {} : { timeout })
    } catch (error) {
      if (before === 'started' && this.#state === 'stopping') {
        this.#state = before
        retention.start()
      }
      throw error
    }
    if (this.#state === 'stopping') this.#state = 'stopped'
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    this.#callOffTry()
    this.#params.retention.stop()
    await this.#params.durably.close()
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

/** The queue was stopped, and takes no tasks until it is started again. */
export class QueueStoppedError extends DurablyError {
  override readonly name = 'QueueStoppedError'

  constructor() {
    super('QUEUE_STOPPED', 'The queue was stopped and takes no tasks until start() is called again.')
  }
}

interface TaskPausesParams {
  readonly durably: Pick<Durably, 'pauseJob' | 'resumeJob'>
  readonly handlers: Handlers
  readonly queueSwitch: Pick<QueueSwitch, 'prepared'>
}

/** Which types begin no tasks, here or anywhere. */
export class TaskPauses {
  readonly #params: TaskPausesParams
  /** Of all types, those registered later too. */
  #isPaused = false

  constructor(params: TaskPausesParams) {
    this.#params = params
  }

  /** A handler is there that was not yet. */
  added(jobName: string): void {
    if (this.#isPaused) this.#params.durably.pauseJob(jobName)
  }

  pause(taskType?: string, options: PauseOptions = {}): Promise<void> | undefined {
    if (options.scope === 'database') return this.#everywhere('pauseJob', taskType, options)
    for (const jobName of this.#params.handlers.handledJobNames(taskType)) {
      this.#params.durably.pauseJob(jobName, options)
    }
    this.#isPaused ||= taskType === undefined
    return undefined
  }

  resume(taskType?: string, options: PauseOptions = {}): Promise<void> | undefined {
    if (options.scope === 'database') return this.#everywhere('resumeJob', taskType, options)
    for (const jobName of this.#params.handlers.handledJobNames(taskType)) {
      this.#params.durably.resumeJob(jobName, options)
    }
    this.#isPaused &&= taskType !== undefined
    return undefined
  }

  async #everywhere(
    call: 'pauseJob' | 'resumeJob',
    taskType: string | undefined,
    options: PauseOptions<'database'>,
  ): Promise<void> {
    const { durably, handlers, queueSwitch } = this.#params
    const jobNames = handlers.jobNames(taskType)
    await queueSwitch.prepared()
    for (const jobName of jobNames) await durably[call](jobName, options)
  }
}
