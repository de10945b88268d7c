import type { JobDefinition, JobHandle, Run } from '../index'
import { DuplicateHandlerError, UnknownTaskTypeError } from './errors'
import type { ResolvedHandler } from './handler'
import { jobNameOf, taskTypeOf, toTask, type Task } from './task'

/** A handler, and the way to make tasks for it. */
export interface RegisteredHandler extends ResolvedHandler {
  readonly handle: JobHandle
}

/** The handlers of a queue by their types. */
export class Handlers {
  readonly #byType = new Map<string, RegisteredHandler>()
  readonly #maxAttempts: number

  /** `maxAttempts` is for tasks whose type nobody has registered here. */
  constructor(maxAttempts: number) {
    this.#maxAttempts = maxAttempts
  }

  add(handler: ResolvedHandler, register: (job: JobDefinition) => JobHandle): void {
    const { taskType, job } = handler
    if (this.#byType.has(taskType)) throw new DuplicateHandlerError(taskType)
    this.#byType.set(taskType, { ...handler, handle: register(job) })
  }

  get(taskType: string): RegisteredHandler {
    const handler = this.#byType.get(taskType)
    if (handler === undefined) throw new UnknownTaskTypeError(String(taskType), [...this.#byType.keys()])
    return handler
  }

  /** The jobs of one type, or of all. */
  jobNames(taskType?: string): readonly string[] {
    if (taskType !== undefined) return [this.get(taskType).job.name]
    return [...this.#byType.keys()].map(jobNameOf)
  }

  toTask(run: Run): Task {
    const type = taskTypeOf(run.jobName)
    return toTask(run, this.#byType.get(type ?? '')?.maxAttempts ?? this.#maxAttempts)
  }
}
