import type { TaskQueue } from '../../queue/index'
import type { Storage } from '../../port'
import type { TaskKind } from './task-kinds'

/** A fault that histories should find. */
export interface TaskMutant {
  /** The storage that all queue objects share. */
  readonly createStorage?: (now: () => number) => Storage
  readonly wrapQueue?: (queue: TaskQueue) => TaskQueue
  /** What a handler is registered with instead of what it should be. */
  readonly distort?: (kind: TaskKind) => TaskKind
}

/** A mutant, and how the violation reads that its broken rule comes to. */
export interface BrokenRule extends TaskMutant {
  readonly shows: RegExp
}
