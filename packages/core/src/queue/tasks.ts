import {
  type Clock,
  ConflictError,
  InvalidOptionError,
  NotFoundError,
  type OptionNames,
  refuseUnknownOptions,
} from '../base'
import type { CommandOptions, RunFilter } from '../client'
import type { Durably } from '../instance'
import type { Run } from '../job'
import type { StatusCounts } from '../port'
import type { Handlers } from './handlers'
import {
  ENDED_RUNS,
  ENDED_TASK_STATES,
  type EndedTaskState,
  RUNS_OF_STATE,
  type Task,
  TASK_STATES,
  type TaskState,
  taskTypeOf,
} from './task'

/** Which tasks `list()` returns. */
export interface TaskFilter {
  /** In this state only. */
  readonly state?: TaskState | undefined
  /** Of this type only. */
  readonly type?: string | undefined
  /** So many at most. Default 100. */
  readonly limit?: number | undefined
  /** The last task of the page before, or its id. Given the task, the page goes on even if that one was removed. */
  readonly cursor?: string | Pick<Task, 'id' | 'createdAt'> | undefined
}

/** Which ended tasks `purge()` removes: those that meet every condition. */
export interface TaskPurge {
  /** Ended so only. */
  readonly state?: EndedTaskState | undefined
  /** Of this type only. */
  readonly type?: string | undefined
  /** Ended longer ago than this many milliseconds, or before this instant. */
  readonly olderThan?: number | Date | undefined
}

/** How many tasks of each state there are. */
export type TaskCounts = Readonly<Record<TaskState, number>>

/** Reading, reviving and removing tasks. */
export interface TaskAccess {
  /** `null` for a task that is not there (any more). */
  status(id: string): Promise<Task | null>
  countsByState(filter?: { readonly type?: string | undefined }): Promise<TaskCounts>
  /** Newest first. */
  list(filter?: TaskFilter): Promise<Task[]>
  /** Puts a dead task back into the queue, with all its attempts before it. `ConflictError` if it is not dead. */
  redrive(id: string, options?: CommandOptions): Promise<Task>
  /** Puts all dead tasks (of a type) back; returns how many. */
  redrive(filter: { readonly type?: string | undefined }, options?: CommandOptions): Promise<number>
  /** Removes a task in whatever state; `ConflictError` while it runs. */
  remove(id: string, options?: CommandOptions): Promise<void>
  /** Removes ended tasks; returns how many. */
  purge(options?: TaskPurge): Promise<number>
}

const PAGE = 100
const OF_TYPE = { type: true } as const
const TASK_FILTER: OptionNames<TaskFilter> = { state: true, type: true, limit: true, cursor: true }
const TASK_PURGE: OptionNames<TaskPurge> = { state: true, type: true, olderThan: true }

export interface TaskAccessParams {
  readonly durably: Durably
  readonly handlers: Handlers
  readonly clock: Clock
  /** Resolves when the storage can be asked. */
  readonly prepared: () => Promise<void>
}

export function createTaskAccess({ durably, handlers, clock, prepared }: TaskAccessParams): TaskAccess {
  async function find(id: string): Promise<Run | null> {
    await prepared()
    const run = await durably.getRun(id)
    return run === null || taskTypeOf(run.jobName) === null ? null : run
  }

  async function findSurely(id: string): Promise<Run> {
    const run = await find(id)
    if (run === null) throw new NotFoundError(`There is no task ${id}.`)
    return run
  }

  async function pageOf({ state, type, limit = PAGE, cursor }: TaskFilter): Promise<Run[]> {
    await prepared()
    const ofState = state === undefined ? {} : RUNS_OF_STATE[requireState(state, TASK_STATES)]
    return durably.getRuns({ ...ofState, jobName: handlers.jobNames(type), limit, cursor } satisfies RunFilter)
  }

  async function redriveAll(type: string | undefined, options: CommandOptions): Promise<number> {
    let redriven = 0
    let cursor: Run | undefined
    for (;;) {
      const page = await pageOf({ state: 'dead', type, cursor })
      for (const { id } of page) if (await isApplied(durably.retry(id, options))) redriven += 1
      cursor = page.at(-1)
      // The rest of the process wants its turn.
      await clock.turn?.()
      if (page.length < PAGE) return redriven
    }
  }

  async function takeBack(id: string, options: CommandOptions): Promise<void> {
    const { status } = await durably.cancel(id, options)
    if (status === 'cancelled') return
    throw new ConflictError(`Task ${id} has just been started. It was asked to stop, and will be dead.`, id, status)
  }

  return {
    async status(id) {
      const run = await find(id)
      return run === null ? null : handlers.toTask(run)
    },
    async countsByState(filter = {}) {
      refuseUnknownOptions('countsByState()', filter, OF_TYPE)
      const { type } = filter
      const jobName = handlers.jobNames(type)
      await prepared()
      return toTaskCounts(await durably.counts({ jobName }))
    },
    async list(filter = {}) {
      refuseUnknownOptions('list()', filter, TASK_FILTER)
      return (await pageOf(filter)).map((run) => handlers.toTask(run))
    },
    redrive: (async (which: string | { readonly type?: string }, options: CommandOptions = {}) => {
      if (typeof which !== 'string') {
        refuseUnknownOptions('redrive(), without an id,', which, OF_TYPE)
        return redriveAll(which.type, options)
      }
      await findSurely(which)
      return handlers.toTask(await durably.retry(which, options))
    }) as TaskAccess['redrive'],
    async remove(id, options = {}) {
      const run = await findSurely(id)
      if (run.status === 'running') throw new ConflictError(`Task ${id} is running.`, id, run.status)
      if (run.finishedAt === null) await takeBack(id, options)
      await durably.deleteRun(id, options)
    },
    async purge(options = {}) {
      refuseUnknownOptions('purge()', options, TASK_PURGE)
      const { state, type, olderThan } = options
      const states = state === undefined ? ENDED_TASK_STATES : [requireState(state, ENDED_TASK_STATES)]
      const status = states.flatMap((each) => ENDED_RUNS[each])
      await prepared()
      return durably.purge({ status, jobName: handlers.jobNames(type), olderThan })
    },
  }
}

function toTaskCounts(counts: StatusCounts): TaskCounts {
  const countOf = (state: TaskState) => {
    const { status, waitsForRetry } = RUNS_OF_STATE[state]
    if (waitsForRetry === true) return counts.waitsForRetry
    const all = status.reduce((sum, each) => sum + counts[each], 0)
    return waitsForRetry === false ? all - counts.waitsForRetry : all
  }
  return Object.fromEntries(TASK_STATES.map((state) => [state, countOf(state)])) as TaskCounts
}

function requireState<T extends TaskState>(state: T, known: readonly T[]): T {
  if (known.includes(state)) return state
  throw new InvalidOptionError(`"${String(state)}" is not a state here. There are ${known.join(', ')}.`)
}

/** Somebody else may have redriven or removed it meanwhile. */
async function isApplied(command: Promise<unknown>): Promise<boolean> {
  try {
    await command
    return true
  } catch (error) {
    if (error instanceof ConflictError || error instanceof NotFoundError) return false
    throw error
  }
}
