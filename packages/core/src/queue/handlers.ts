import { DurablyError, InvalidOptionError, decodeValue } from '../base'
import type { JobDeclaration, Run } from '../job'
import type { RunRecord } from '../port'
import type { DeclaredType, ResolvedHandler } from './handler'
import { jobNameOf, type Task, taskTypeOf, toTask } from './task'

/** A type of which this queue can make tasks. */
interface KnownType {
  readonly maxAttempts: number
  readonly job: JobDeclaration
}

type Register = (job: JobDeclaration) => void

/** What a queue knows of its types: those that it has handlers for, and those that it only enqueues and reads. */
export class Handlers {
  readonly #handled = new Map<string, KnownType>()
  readonly #declared = new Map<string, KnownType>()
  readonly #maxAttempts: number

  /** `maxAttempts` is for tasks whose type nobody has registered here. */
  constructor(maxAttempts: number) {
    this.#maxAttempts = maxAttempts
  }

  add({ taskType, maxAttempts, job }: ResolvedHandler, register: Register): void {
    if (this.#handled.has(taskType)) throw new DuplicateHandlerError(taskType)
    register(job)
    this.#handled.set(taskType, { maxAttempts, job })
  }

  /** Of a type that has a handler the handler says it all. */
  declare(taskType: string, { maxAttempts, job }: DeclaredType, register: Register): void {
    if (this.#declared.has(taskType)) throw new InvalidOptionError(`Tasks of type "${taskType}" are declared already.`)
    register(job)
    this.#declared.set(taskType, { maxAttempts, job })
  }

  get(taskType: string): KnownType {
    const known = this.#find(taskType)
    if (known === undefined) throw new UnknownTaskTypeError(String(taskType), this.#types())
    return known
  }

  /** The jobs of one type, or of all. */
  jobNames(taskType?: string): readonly string[] {
    if (taskType !== undefined) return [this.get(taskType).job.name]
    return this.#types().map(jobNameOf)
  }

  /** The jobs that this queue executes, of one type or of all. */
  handledJobNames(taskType?: string): readonly string[] {
    const handled = [...this.#handled.keys()].map(jobNameOf)
    if (taskType === undefined) return handled
    const { name } = this.get(taskType).job
    return handled.filter((each) => each === name)
  }

  toTask(run: Run): Task {
    return toTask(run, run.payload, this.#maxAttemptsOf(run))
  }

  /** From the record itself: this is made for each task that is enqueued. */
  taskOf(record: RunRecord): Task {
    return toTask(record, decodeValue(record.payload), this.#maxAttemptsOf(record))
  }

  attemptsOf(run: Run): number {
    return this.toTask(run).attempts
  }

  #maxAttemptsOf({ jobName }: Pick<Run, 'jobName'>): number {
    return this.#find(taskTypeOf(jobName) ?? '')?.maxAttempts ?? this.#maxAttempts
  }

  #find(taskType: string): KnownType | undefined {
    return this.#handled.get(taskType) ?? this.#declared.get(taskType)
  }

  #types(): readonly string[] {
    return [...new Set([...this.#handled.keys(), ...this.#declared.keys()])]
  }
}

/** The queue has neither a handler for this type nor a declaration of it. */
export class UnknownTaskTypeError extends DurablyError {
  override readonly name = 'UnknownTaskTypeError'
  readonly taskType: string

  constructor(taskType: string, known: readonly string[]) {
    const there = known.length === 0 ? 'none is' : `there are ${known.map((each) => `"${each}"`).join(', ')}`
    super(
      'UNKNOWN_TASK_TYPE',
      `No handler for tasks of type "${taskType}" is registered on this queue; ${there}. To enqueue them, declare() does.`,
    )
    this.taskType = taskType
  }
}

/** A second handler for one type. */
export class DuplicateHandlerError extends DurablyError {
  override readonly name = 'DuplicateHandlerError'
  readonly taskType: string

  constructor(taskType: string) {
    super('DUPLICATE_HANDLER', `Tasks of type "${taskType}" have a handler on this queue already.`)
    this.taskType = taskType
  }
}
