import type { TaskContext, TaskEvent } from '../../queue/index'
import { must, mustEqual } from '../simulation/violation'
import type { Settled } from './deed'
import { judgeStart } from './judge-start'
import type { BookedTask, Execution, Ledger } from './ledger'
import type { QueueProcess, QueueSettings } from './queue-process'
import { backoffAfter, type Failure, type TaskKind, timeoutOf } from './task-kinds'

export interface WitnessParams {
  readonly ledger: Ledger
  readonly kinds: readonly TaskKind[]
  readonly settings: QueueSettings
}

/** An attempt failed, and what becomes of the task is to be said next. */
interface Expected {
  readonly task: BookedTask
  readonly attempt: number
  readonly failure: Failure
}

/** Hears what queues say and sees what handlers do. What is said has to follow from what was done; then it is booked. */
export class Witness {
  readonly #params: WitnessParams
  readonly #expected = new Map<QueueProcess, Expected>()
  /** Of all processes together: what was heard of each kind, to see that a story is about something. */
  readonly heard = new Map<string, number>()

  constructor(params: WitnessParams) {
    this.#params = params
  }

  note(name: string): void {
    this.heard.set(name, (this.heard.get(name) ?? 0) + 1)
  }

  hear(process: QueueProcess, event: TaskEvent): void {
    const name = event.type === 'enqueued' ? event.cause : event.type
    this.note(name)
    must(process.isAlive, () => `process ${process.number} is dead and says ${name} of ${event.taskId}`)
    const isDue = event.type === 'retry_scheduled' || event.type === 'dead'
    const expected = this.#expected.get(process)
    must(isDue || expected === undefined, () => `${expected?.task.id} failed, and next is said: ${name}`)
    this.#expected.delete(process)
    mustEqual(event.timestamp, new Date(process.clock.now()).toISOString(), `the time of ${name} of ${event.taskId}`)
    if (event.type === 'enqueued' && event.cause === 'new') this.#announced(event)
    else this.#book(process, event, expected)
  }

  #book(process: QueueProcess, event: TaskEvent, expected: Expected | undefined): void {
    const task = this.#taskOf(event)
    if (event.type === 'enqueued') this.#enqueued(process, task, event.cause)
    else if (event.type === 'started') this.#started(process, task, event)
    else if (event.type === 'succeeded') this.#succeeded(process, task, event)
    else if (event.type === 'failed') this.#failed(process, task, event)
    else if (event.type === 'retry_scheduled') this.#retries(expected, task, event)
    else this.#died(expected, task, event)
  }

  /** The handler was called: for this execution, or for none that anybody has heard of. */
  called(process: QueueProcess, { taskId, attempt }: TaskContext): Execution | null {
    const current = this.#params.ledger.tasks.get(taskId)?.current ?? null
    const isRight = current?.process === process && current.over === null && current.attempt === attempt
    if (current === null || !isRight || current.isCalled) return null
    current.isCalled = true
    return current
  }

  #announced({ taskId, taskType }: TaskEvent<'enqueued'>): void {
    const { ledger, kinds } = this.#params
    const kind = kinds.find(({ type }) => type === taskType)
    must(!ledger.tasks.has(taskId), () => `${taskId} is new for the second time`)
    if (kind !== undefined) ledger.add(taskId, kind)
  }

  #taskOf({ type, taskId, taskType }: TaskEvent): BookedTask {
    const task = this.#params.ledger.tasks.get(taskId)
    must(task !== undefined, () => `${type} is said of ${taskId}, which is not there`)
    const found = task as BookedTask
    mustEqual(taskType, found.kind.type, `the type of ${taskId}`)
    return found
  }

  #enqueued(process: QueueProcess, task: BookedTask, cause: TaskEvent<'enqueued'>['cause']): void {
    if (cause === 'redriven') redrive(task)
    else if (cause === 'released') release(process, task)
    else this.#recover(process, task)
  }

  #recover(process: QueueProcess, task: BookedTask): void {
    const { current } = task
    const { leaseMs, maxCrashes } = this.#params.settings
    const now = process.clock.monotonic()
    must(
      current?.over === 'crashed' && task.state === 'running',
      () => `${task.id} was recovered, and is ${task.state}`,
    )
    must(
      now - (current?.startedAt ?? 0) >= leaseMs,
      () =>
        `${task.id} was recovered ${now - (current?.startedAt ?? 0)} ms after its start, its lease is ${leaseMs} ms`,
    )
    bookCrash(task)
    must(task.crashes < maxCrashes, () => `${task.id} was recovered after ${task.crashes} crashes`)
    if (task.crashes > 1) this.note('recovered again')
    task.state = 'queued'
    task.notBefore = process.clock.now() + leastWaitAfterCrashes(task.crashes)
  }

  #started(process: QueueProcess, task: BookedTask, { attempt }: TaskEvent<'started'>): void {
    judgeStart({ process, task, attempt, ledger: this.#params.ledger })
    task.calls += 1
    const { startedAt } = this.begin(process, task, attempt)
    const starts = process.starts.get(task.kind.type) ?? []
    process.starts.set(task.kind.type, [...starts, startedAt])
  }

  begin(process: QueueProcess, task: BookedTask, attempt: number): Execution {
    const startedAt = process.clock.monotonic()
    task.current = { process, attempt, startedAt, isCalled: false, settled: null, over: null }
    task.state = 'running'
    return task.current
  }

  #succeeded(process: QueueProcess, task: BookedTask, event: TaskEvent<'succeeded'>): void {
    const execution = this.#ended(process, task, event)
    const { settled } = execution
    must(isReturn(settled), () => `${task.id} succeeded, and its handler came to ${JSON.stringify(settled)}`)
    execution.over = 'succeeded'
    task.state = 'succeeded'
    task.lastError = null
    task.finishedAt = process.clock.now()
  }

  #failed(process: QueueProcess, task: BookedTask, event: TaskEvent<'failed'>): void {
    const execution = this.#ended(process, task, event)
    const failure = failureOf(execution, task.kind)
    must(
      failure !== null && failure.message === event.error,
      () => `${task.id} failed with ${event.error}; its handler came to ${JSON.stringify(execution.settled)}`,
    )
    execution.over = 'failed'
    task.spent = event.attempt
    task.lastError = event.error
    if (failure !== null) this.#expected.set(process, { task, attempt: event.attempt, failure })
  }

  #retries(expected: Expected | undefined, task: BookedTask, event: TaskEvent<'retry_scheduled'>): void {
    must(expected?.task === task, () => `retry_scheduled of ${task.id} does not follow its failure`)
    if (expected === undefined) return
    const bounds = backoffAfter(task.kind, expected.attempt, expected.failure)
    const { backoffMs, nextRunAt, attempt, error } = event
    const isRight = bounds !== null && backoffMs >= bounds.least && backoffMs <= bounds.most
    must(isRight, () => `${task.id} waits ${backoffMs} ms after attempt ${attempt}, not ${JSON.stringify(bounds)}`)
    mustEqual([attempt, error], [expected.attempt, expected.failure.message], `retry_scheduled of ${task.id}`)
    task.state = 'retry_scheduled'
    task.notBefore = Date.parse(nextRunAt)
    mustEqual(task.notBefore, Date.parse(event.timestamp) + backoffMs, `nextRunAt of ${task.id}`)
  }

  /** After a failure, or because its processes die. */
  #died(expected: Expected | undefined, task: BookedTask, { attempts, error, timestamp }: TaskEvent<'dead'>): void {
    if (expected === undefined) this.#diedOfCrashes(task)
    else {
      const bounds = backoffAfter(task.kind, expected.attempt, expected.failure)
      mustEqual(task.id, expected.task.id, 'the task that is dead')
      must(bounds === null, () => `${task.id} is dead after attempt ${expected.attempt} of ${task.kind.maxAttempts}`)
      mustEqual(error, expected.failure.message, `what ${task.id} died of`)
    }
    mustEqual(attempts, task.spent, `attempts of ${task.id}, which is dead`)
    task.state = 'dead'
    task.lastError = error
    task.finishedAt = Date.parse(timestamp)
  }

  #diedOfCrashes(task: BookedTask): void {
    const { maxCrashes } = this.#params.settings
    if (task.state === 'running' && task.current?.over === 'crashed') bookCrash(task)
    const isSpent = task.crashes > 0 && (task.spent >= task.kind.maxAttempts || task.crashes >= maxCrashes)
    must(isSpent, () => `${task.id} is dead after ${task.spent} attempts and ${task.crashes} crashes`)
  }

  #ended(
    process: QueueProcess,
    { id, current }: BookedTask,
    { type, attempt, durationMs }: TaskEvent<'succeeded' | 'failed'>,
  ): Execution {
    must(
      current?.process === process && current.over === null && current.attempt === attempt,
      () => `${type} is said of attempt ${attempt} of ${id}, which is not in progress`,
    )
    const execution = current as Execution
    mustEqual(durationMs, process.clock.monotonic() - execution.startedAt, `the duration of ${id}`)
    return execution
  }
}

function isReturn(settled: Settled | null): boolean {
  return settled !== null && 'failure' in settled && settled.failure === null
}

/** What an execution may have failed with: its time was up, or its handler threw before. */
function failureOf({ settled, startedAt, process }: Execution, kind: TaskKind): Failure | null {
  const isTimeUp = kind.timeout !== null && process.clock.monotonic() - startedAt >= kind.timeout
  if (settled !== null && 'failure' in settled && settled.failure !== null) return settled.failure
  return isTimeUp ? timeoutOf(kind) : null
}

function redrive(task: BookedTask): void {
  must(task.state === 'dead', () => `${task.id} was redriven, and is ${task.state}`)
  Object.assign(task, { state: 'queued', spent: 0, crashes: 0, calls: 0, lastError: null, current: null })
}

function release(process: QueueProcess, task: BookedTask): void {
  const { current } = task
  const now = process.clock.monotonic()
  must(
    current?.process === process && current.over === null && task.state === 'running',
    () => `${task.id} was given back by process ${process.number}, which does not have it`,
  )
  const begun = current?.startedAt ?? Number.NaN
  const isRight = process.stops.some(({ begunBefore, from }) => begun <= begunBefore && now >= from)
  must(isRight, () => `${task.id} was given back although its queue does not stop`)
  if (current !== null) current.over = 'released'
  task.state = 'queued'
  task.calls -= 1
}

function bookCrash(task: BookedTask): void {
  task.crashes += 1
  task.spent = task.current?.attempt ?? task.spent
}

/** At least half of the full wait, by chance. Not asked of the engine, which is what is judged. */
function leastWaitAfterCrashes(crashes: number): number {
  return crashes < 2 ? 0 : Math.min(1000 * 2 ** (crashes - 1), 60_000) / 2
}
