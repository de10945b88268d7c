import type { PauseOptions } from '../client'
import type { Durably } from '../instance'
import type { Handlers } from './handlers'
import type { QueueSwitch } from './queue-switch'

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
