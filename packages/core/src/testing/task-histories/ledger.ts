import type { EndedTaskState, TaskState } from '../../queue/index'
import type { Settled } from './deed'
import type { QueueProcess } from './queue-process'
import type { TaskKind } from './task-kinds'

/** Why an execution is not one any more. */
export type Over = 'succeeded' | 'failed' | 'released' | 'crashed'

/** One attempt at a task, in one process. */
export interface Execution {
  readonly process: QueueProcess
  readonly attempt: number
  readonly startedAt: number
  /** The handler was called, and not only said to be. */
  isCalled: boolean
  settled: Settled | null
  over: Over | null
}

/** A task as it should be. */
export interface BookedTask {
  readonly id: string
  readonly kind: TaskKind
  state: TaskState
  /** Attempts that failed or were lost, since it was enqueued or redriven. */
  spent: number
  /** Attempts that ended with their process, since then. */
  crashes: number
  /** How often its handler was called since then; not counted are those that a queue that stopped gave back. */
  calls: number
  notBefore: number
  lastError: string | null
  finishedAt: number
  dedupeKey: string | null
  current: Execution | null
}

/** What the caller of `enqueue` knows of its task. */
export interface Wanted {
  readonly dedupeKey: string | null
  readonly notBefore: number
}

/** Every task there should be. */
export class Ledger {
  readonly tasks = new Map<string, BookedTask>()
  readonly #keys = new Map<string, string>()
  /** Tasks that are no longer there, to say so when something is heard of them. */
  readonly #gone = new Set<string>()

  /** Heard of before its caller could say more of it. */
  add(id: string, kind: TaskKind): void {
    this.tasks.set(id, {
      id,
      kind,
      state: 'queued',
      spent: 0,
      crashes: 0,
      calls: 0,
      notBefore: 0,
      lastError: null,
      finishedAt: 0,
      dedupeKey: null,
      current: null,
    })
  }

  complete(task: BookedTask, { dedupeKey, notBefore }: Wanted): void {
    task.notBefore = Math.max(task.notBefore, notBefore)
    task.dedupeKey = dedupeKey
    if (dedupeKey !== null) this.#keys.set(keyOf(task.kind.type, dedupeKey), task.id)
  }

  withKey(type: string, dedupeKey: string | null): string | undefined {
    return dedupeKey === null ? undefined : this.#keys.get(keyOf(type, dedupeKey))
  }

  remove(task: BookedTask): void {
    this.tasks.delete(task.id)
    this.#gone.add(task.id)
    if (task.dedupeKey !== null) this.#keys.delete(keyOf(task.kind.type, task.dedupeKey))
  }

  isGone(id: string): boolean {
    return this.#gone.has(id)
  }

  all(): readonly BookedTask[] {
    return [...this.tasks.values()]
  }

  ended(state: EndedTaskState): readonly BookedTask[] {
    return this.all().filter((task) => task.state === state)
  }

  /** Those in progress in a process. */
  executing(process: QueueProcess): readonly BookedTask[] {
    return this.all().filter(({ current }) => current?.process === process && current.over === null)
  }
}

/** Attempts as the queue shows them. */
export function attemptsOf({ state, spent, current }: BookedTask): number {
  return (state === 'running' || state === 'succeeded' ? current?.attempt : null) ?? spent
}

function keyOf(type: string, dedupeKey: string): string {
  return `${type} ${dedupeKey}`
}
