import { DurablyError } from '../base'

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

/** The queue was stopped, and takes no tasks until it is started again. */
export class QueueStoppedError extends DurablyError {
  override readonly name = 'QueueStoppedError'

  constructor() {
    super('QUEUE_STOPPED', 'The queue was stopped and takes no tasks until start() is called again.')
  }
}
