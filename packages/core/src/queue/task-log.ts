import type { Durably } from '../instance'
import { TASK_EVENT_TYPES, type TaskEvent, type TaskEvents } from './task-events'

/** Where lines about tasks go: a message, and fields for machines. `console` is one. */
export interface TaskLogger {
  info(message: string, fields: object): void
  warn(message: string, fields: object): void
  error(message: string, fields: object): void
}

const LEVELS = {
  enqueued: 'info',
  started: 'info',
  succeeded: 'info',
  failed: 'warn',
  retry_scheduled: 'warn',
  dead: 'error',
} as const satisfies Record<TaskEvent['type'], keyof TaskLogger>

/** One line for each event of a task, and for each that a handler logs. */
export function logTasks(logger: TaskLogger, events: TaskEvents, durably: Durably): void {
  for (const type of TASK_EVENT_TYPES) {
    events.on(type, ({ type: event, ...fields }) => logger[LEVELS[type]](`task ${event}`, { event, ...fields }))
  }
  durably.on('log:write', ({ runId, level, message, data }) => logger[level](message, { taskId: runId, data }))
}
