export { DuplicateHandlerError, UnknownTaskTypeError } from './handlers'
export { QueueStoppedError } from './queue-switch'
export type { TaskBody, TaskContext, TaskDeclaration, TaskHandler, TaskOptions } from './handler'
export type { Actor, CommandOptions } from '../client'
export type { KeepLimits, TaskQueueOptions } from './options'
export { ENDED_TASK_STATES, type EndedTaskState, type Task, TASK_STATES, type TaskState } from './task'
export {
  type EventFields as TaskEventFields,
  type OfAttempt as EventOfAttempt,
  type OfTask as EventOfTask,
  TASK_EVENT_TYPES,
  type TaskEvent,
  type TaskEventType,
  type TaskLogger,
} from './task-events'
export type { EnqueuedTask, EnqueueItem, EnqueueOptions } from './enqueue'
export {
  createTaskQueue,
  type TaskQueue,
  type TypeIn as TaskTypeIn,
  type WithSchema as WithTaskSchema,
} from './task-queue'
export type { TaskAccess, TaskCounts, TaskFilter, TaskPurge } from './tasks'
