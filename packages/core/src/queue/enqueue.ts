import { InvalidOptionError } from '../base'
import type { Instance } from '../instance'
import type { RunRecord } from '../port'
import { type EnqueueOptions, toTriggerOptions } from './enqueue-options'
import { Enqueueing } from './enqueueing'
import type { Handlers } from './handlers'
import type { QueueSwitch } from './queue-switch'
import type { EnqueuedTask, EnqueueItem } from './task-queue'

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
