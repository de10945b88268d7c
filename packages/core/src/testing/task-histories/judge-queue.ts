import { type EndedTaskState, type Task, TASK_STATES, type TaskQueue, type TaskState } from '../../queue/index'
import { must, mustEqual } from '../simulation/violation'
import { attemptsOf, type BookedTask, type Ledger } from './ledger'
import type { QueueProcess, QueueSettings } from './queue-process'
import { retentionMs } from './retention-time'
import type { TaskKind } from './task-kinds'

export interface JudgeQueueParams {
  readonly ledger: Ledger
  readonly kinds: readonly TaskKind[]
  readonly settings: QueueSettings
  readonly queue: TaskQueue
  readonly processes: readonly QueueProcess[]
  readonly nowMs: number
  /** Asks for the list of all and for the status of each, and not only for the lists of the states and counts. */
  readonly isThorough: boolean
}

const ALL = 10_000

/** Compares everything that a queue shows with what should be there, when nothing can happen without time passing. */
export async function judgeQueue(params: JudgeQueueParams): Promise<void> {
  const { ledger, queue, kinds, isThorough } = params
  const listed = await readStates(queue)
  const ids = listed.map(({ id }) => id)
  must(new Set(ids).size === ids.length, () => `a task is listed twice among ${ids}`)
  await judgeCounts(queue, listed, kinds)
  const shown = new Map(listed.map((task) => [task.id, task]))
  for (const booked of judgeGone(params, shown)) ledger.remove(booked)
  for (const task of listed) judgeTask(ledger, task)
  if (isThorough) await judgeReads(queue, shown)
  judgeKept(params)
  for (const process of params.processes) judgeExecutions(ledger, process)
}

/** Each state by itself, as its list is. */
async function readStates(queue: TaskQueue): Promise<Task[]> {
  const all: Task[] = []
  for (const state of TASK_STATES) {
    const tasks = await queue.list({ state, limit: ALL })
    for (const task of tasks) mustEqual(task.state, state, `the state of ${task.id} in the list of ${state}`)
    all.push(...tasks)
  }
  return all
}

async function judgeCounts(queue: TaskQueue, listed: readonly Task[], kinds: readonly TaskKind[]): Promise<void> {
  for (const type of [undefined, ...kinds.map((kind) => kind.type)]) {
    const counts = await queue.countsByState({ type })
    for (const state of TASK_STATES) {
      const tasks = listed.filter((task) => task.state === state && (type === undefined || task.type === type))
      mustEqual(counts[state], tasks.length, `the count of ${state} (${type ?? 'all types'})`)
    }
  }
}

/** What is not there any more was too old, or there were enough newer ones. */
function judgeGone(params: JudgeQueueParams, shown: ReadonlyMap<string, Task>): readonly BookedTask[] {
  const { ledger } = params
  const gone = ledger.all().filter(({ id }) => !shown.has(id))
  for (const task of gone) must(mayBeGone(params, task), () => `${task.id} was ${task.state} and is gone`)
  return gone
}

function mayBeGone({ ledger, settings, nowMs }: JudgeQueueParams, task: BookedTask): boolean {
  const { state, finishedAt } = task
  if (!isEnded(state)) return false
  const { age, count } = settings.keep[state]
  const newer = ledger.ended(state).filter((other) => other !== task && other.finishedAt >= finishedAt)
  return nowMs - finishedAt > age || newer.length >= count
}

function judgeTask(ledger: Ledger, task: Task): void {
  const { id } = task
  const booked = ledger.tasks.get(id)
  must(
    booked !== undefined,
    () => `${id} is ${task.state}${ledger.isGone(id) ? ', and was removed' : ', from nowhere'}`,
  )
  if (booked === undefined) return
  mustEqual(task.state, booked.state, `the state of ${id}`)
  mustEqual(task.type, booked.kind.type, `the type of ${id}`)
  mustEqual(task.attempts, attemptsOf(booked), `attempts of ${id}, which is ${task.state}`)
  mustEqual(task.maxAttempts, booked.kind.maxAttempts, `maxAttempts of ${id}`)
  if (task.state === 'succeeded' || task.state === 'dead') {
    mustEqual(task.lastError, booked.lastError, `lastError of ${id}, which is ${task.state}`)
    mustEqual(Date.parse(task.finishedAt ?? ''), booked.finishedAt, `finishedAt of ${id}`)
  }
  if (task.state === 'retry_scheduled') {
    mustEqual(task.lastError, booked.lastError, `lastError of ${id}, which is tried again`)
    mustEqual(task.nextRunAt, new Date(booked.notBefore).toISOString(), `nextRunAt of ${id}`)
  }
}

/** However a task is read, it is the same. */
async function judgeReads(queue: TaskQueue, shown: ReadonlyMap<string, Task>): Promise<void> {
  const all = await queue.list({ limit: ALL })
  mustEqual(all.length, shown.size, 'the number of tasks in the list of all')
  for (const task of all) {
    mustEqual(task, shown.get(task.id), `${task.id} in the list of all`)
    mustEqual(await queue.status(task.id), task, `status of ${task.id}`)
  }
}

/** A queue that was started for two rounds of its retention has removed what it does not keep. */
function judgeKept({ ledger, settings, processes, nowMs }: JudgeQueueParams): void {
  const longMs = 2 * retentionMs(settings)
  const isSwept = ({ isAlive, isStarted, startedAt, clock }: QueueProcess) =>
    isAlive && isStarted && clock.monotonic() - startedAt > longMs
  if (!processes.some(isSwept)) return
  for (const state of ['succeeded', 'dead'] as const) {
    const { age, count } = settings.keep[state]
    const old = ledger.ended(state).filter(({ finishedAt }) => nowMs - finishedAt > longMs)
    const tooOld = old.find(({ finishedAt }) => nowMs - finishedAt > age + longMs)
    must(tooOld === undefined, () => `${tooOld?.id} is ${state} for ${nowMs - (tooOld?.finishedAt ?? 0)} ms`)
    must(old.length <= count, () => `${old.length} tasks are ${state}, ${count} are to be kept`)
  }
}

/** What has come to its end, or to the end of its time, was noticed. */
function judgeExecutions(ledger: Ledger, process: QueueProcess): void {
  const { number, clock, isStarted, isDraining, drainedBy } = process
  const isOverdue = isDraining && !isStarted && clock.monotonic() > drainedBy
  must(!isOverdue, () => `process ${number} should be idle since ${drainedBy}`)
  for (const { id, kind, current } of ledger.executing(process)) {
    if (current === null) continue
    must(current.isCalled, () => `${id} was said to be started, and its handler was not called`)
    must(current.settled === null, () => `the handler of ${id} is done, and nothing was said of it`)
    const isLate = kind.timeout !== null && clock.monotonic() - current.startedAt >= kind.timeout
    must(!isLate, () => `the time of ${id} is up, and its attempt goes on`)
  }
}

export function isEnded(state: TaskState): state is EndedTaskState {
  return state === 'succeeded' || state === 'dead'
}
