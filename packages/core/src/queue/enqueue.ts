import { InvalidOptionError, type OptionNames, refuseUnknownOptions, StorageError } from '../base'
import type { TriggerOptions } from '../job'
import { DEFAULTS } from '../client'
import type { Instance } from '../instance'
import type { RunRecord, NewRun } from '../port'
import type { Handlers } from './handlers'
import type { QueueSwitch } from './queue-switch'
import type { Task } from './task'

/** When and in which order a task runs. */
export interface EnqueueOptions {
  /** Milliseconds until it may run. */
  readonly delay?: number | undefined
  /** The instant from which it may run. */
  readonly runAt?: Date | string | undefined
  /** A second task of the same type and key is the first one, for as long as that is kept. */
  readonly dedupeKey?: string | undefined
  /** Higher runs first. Default 0. */
  readonly priority?: number | undefined
  /** A transaction of the caller's on the database of the queue: the task is there with it, or not at all. */
  readonly transaction?: unknown
}

/** One task of a list. */
export interface EnqueueItem<TPayload = unknown> {
  readonly payload: TPayload
  readonly options?: EnqueueOptions | undefined
}

/** What `enqueue` answers. `deduplicated`: the key had a task already, and this is it. */
export type EnqueuedTask = Task & { readonly deduplicated: boolean }

const OPTIONS: OptionNames<EnqueueOptions> = {
  delay: true,
  runAt: true,
  dedupeKey: true,
  priority: true,
  transaction: true,
}

export function toTriggerOptions(options?: EnqueueOptions): TriggerOptions {
  if (options === undefined) return DEFAULTS
  refuseUnknownOptions('enqueue()', options, OPTIONS)
  const { dedupeKey, ...others } = options
  if (dedupeKey === '') throw new InvalidOptionError('dedupeKey must not be empty: give a text, or leave it out.')
  return { ...others, idempotencyKey: dedupeKey }
}

interface EnqueueParams {
  readonly instance: Instance
  readonly handlers: Handlers
  readonly queueSwitch: QueueSwitch
}

/** Ways into the queue. */
export function createEnqueue({ instance, handlers, queueSwitch }: EnqueueParams) {
  async function enqueueMany(taskType: string, items: readonly EnqueueItem[]): Promise<EnqueuedTask[]> {
    const { job } = handlers.get(taskType)
    queueSwitch.requireOpen()
    if (!Array.isArray(items)) throw new InvalidOptionError('enqueueMany() needs a list of { payload, options }.')
    const runsToBe = items.map((item) => ({ job, payload: item?.payload, options: toTriggerOptions(item?.options) }))
    // Whoever has a transaction open on the database may hold its only connection.
    if (runsToBe.every(({ options }) => options.transaction === undefined)) await queueSwitch.prepared()
    queueSwitch.requireOpen()
    const answers = await instance.trigger(runsToBe)
    return answers.map(({ run, created }) => toEnqueued(run, created))
  }

  function toEnqueued(record: RunRecord, created: boolean): EnqueuedTask {
    const task = handlers.taskOf(record)
    // One literal: this is made for each task, and a spread into a larger object costs several times as much.
    return {
      id: task.id,
      type: task.type,
      payload: task.payload,
      state: task.state,
      attempts: task.attempts,
      maxAttempts: task.maxAttempts,
      lastError: task.lastError,
      nextRunAt: task.nextRunAt,
      priority: task.priority,
      createdAt: task.createdAt,
      updatedAt: task.updatedAt,
      startedAt: task.startedAt,
      finishedAt: task.finishedAt,
      deduplicated: !created,
    }
  }

  const enqueueing = new Enqueueing({ instance, queueSwitch, toEnqueued })

  async function enqueueAlone(taskType: string, payload: unknown, options?: EnqueueOptions): Promise<EnqueuedTask> {
    const [task] = await enqueueMany(taskType, [{ payload, options }])
    return task as EnqueuedTask
  }

  /** The run is made now where that can be: what is enqueued in one moment is stored together. */
  function enqueue(taskType: string, payload: unknown, given?: EnqueueOptions): Promise<EnqueuedTask> {
    if (given?.transaction !== undefined) return enqueueAlone(taskType, payload, given)
    try {
      const { job } = handlers.get(taskType)
      queueSwitch.requireOpen()
      const run = instance.newRun({ job, payload, options: toTriggerOptions(given) })
      return run instanceof Promise ? run.then((made) => enqueueing.add(made)) : enqueueing.add(run)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return { enqueue, enqueueMany }
}

/** What tasks that were enqueued at once are stored with: large lists keep others waiting, and are no cheaper. */
const LONGEST_LIST = 500
const LARGEST_LIST = 4 * 1024 * 1024

const SOON = Promise.resolve()

interface Waiting {
  readonly run: NewRun
  readonly stored: (task: EnqueuedTask) => void
  readonly refused: (error: unknown) => void
}

interface EnqueueingParams {
  readonly instance: Pick<Instance, 'enqueue'>
  readonly queueSwitch: QueueSwitch
  readonly toEnqueued: (record: RunRecord, created: boolean) => EnqueuedTask
}

/** Stores tasks that are enqueued one by one: those of one moment, and what gathers while a list is on its way, together. */
export class Enqueueing {
  readonly #params: EnqueueingParams
  #gathered: Waiting[] = []
  #isWriting = false

  constructor(params: EnqueueingParams) {
    this.#params = params
  }

  add(run: NewRun): Promise<EnqueuedTask> {
    return new Promise((stored, refused) => {
      this.#gathered.push({ run, stored, refused })
      if (this.#isWriting) return
      this.#isWriting = true
      void SOON.then(() => (this.#params.queueSwitch.isPrepared ? this.#write() : this.#prepare()))
    })
  }

  async #prepare(): Promise<void> {
    try {
      await this.#params.queueSwitch.prepared()
      // It may have been stopped meanwhile.
      this.#params.queueSwitch.requireOpen()
    } catch (error) {
      for (const { refused } of this.#gathered.splice(0)) refused(error)
    }
    this.#write()
  }

  #write(): void {
    const list = this.#take()
    if (list.length === 0) this.#isWriting = false
    else this.#store(list, () => this.#write())
  }

  #take(): readonly Waiting[] {
    const gathered = this.#gathered
    let [count, size] = [0, 0]
    while (count < gathered.length && count < LONGEST_LIST) {
      size += gathered[count]?.run.payload?.length ?? 0
      if (count > 0 && size > LARGEST_LIST) break
      count += 1
    }
    if (count < gathered.length) return gathered.splice(0, count)
    this.#gathered = []
    return gathered
  }

  #store(list: readonly Waiting[], next: () => void): void {
    this.#params.instance.enqueue(list.map(({ run }) => run)).then(
      (answers) => {
        for (const [index, { run, created }] of answers.entries())
          list[index]?.stored(this.#params.toEnqueued(run, created))
        next()
      },
      (error: unknown) => {
        // One that the storage will never take is not the fault of the others, and nothing of the list was written.
        const isOfOne = error instanceof StorageError && error.code === 'STORAGE_REJECTED' && list.length > 1
        if (isOfOne) this.#storeEach(list, next)
        else {
          for (const { refused } of list) refused(error)
          next()
        }
      },
    )
  }

  #storeEach([first, ...others]: readonly Waiting[], next: () => void): void {
    if (first === undefined) next()
    else this.#store([first], () => this.#storeEach(others, next))
  }
}
