import { orRefused } from './ctx-call'
import { toInstant } from './environment'
import { InvalidOptionError } from './errors'
import { toLogData, toLogText } from './logging'
import type { Pass } from './open-calls'
import { triesOf } from './retry'
import { runStep, type RunStepOptions, type StepBody } from './step-run'
import type { StepScope } from './step-scope'
import { transactionStep, type TransactionBody, type TransactionOptions } from './step-transaction'
import { triggerStep, type ChildOptions, type ChildRun, type JobRef } from './step-trigger'
import { triggerAllStep, type ChildRuns, type TriggerAllOptions } from './step-trigger-all'
import { streamStep, type StreamBody, type StreamOptions } from './step-stream'
import type { StepLog, StepTools } from './step-tools'
import { sleepStep, waitForChild, waitForStep, type WaitForOptions } from './step-wait'
import { waitForChildren, type ChildResult, type Children, type WaitAllOptions } from './step-wait-all'
import type { NewLog, Progress } from './storage'

/** What a job gets besides its payload. */
export interface JobContext {
  readonly runId: string
  readonly jobName: string
  /** 1 at first; counts executions that ended by an error of the job. Crashes and waits do not count. */
  readonly attempt: number
  /**
   * 1 at first, and after a retry by hand; also counts executions that ended with their worker, back to the last
   * recorded step. Going on after a wait does not count.
   */
  readonly tries: number
  /** Aborts when this execution has to end early; the reason is an `InterruptionError`. */
  readonly signal: AbortSignal
  readonly log: StepLog
  /**
   * Runs `body` and stores its result under `name`; when a step of that name is stored already, returns what is stored
   * and does not run the body. Names are unique within an execution. What is returned has been through JSON.
   */
  run<T>(name: string, body: StepBody<T>): Promise<T>
  run<T>(name: string, options: RunStepOptions, body: StepBody<T>): Promise<T>
  /**
   * Runs `body` in a transaction of the database that durably works with, and stores its result in that very
   * transaction: rows of the application and the step are there together, once, or not at all. The body awaits nothing
   * but the transaction. `Trx` is what the storage hands over; on SQL databases Kysely's `Transaction`.
   */
  transaction<T, Trx = unknown>(name: string, body: TransactionBody<T, Trx>): Promise<T>
  transaction<T, Trx = unknown>(name: string, options: TransactionOptions, body: TransactionBody<T, Trx>): Promise<T>
  /**
   * Runs `body` as `run` does, and lets it tell what it has so far: `emit(chunk)` is a `step:chunk` event, stored if
   * the history is. A body that starts again begins with a `step:restart`; only chunks after the last one count.
   */
  stream<T>(name: string, body: StreamBody<T>): Promise<T>
  stream<T>(name: string, options: StreamOptions, body: StreamBody<T>): Promise<T>
  /**
   * Lets the run wait in the database, for so many milliseconds from the first call or until an instant. Nobody holds
   * it meanwhile, unless another step of it is running.
   */
  sleep(name: string, until: number | Date): Promise<void>
  /** Waits for `durably.signal(runId, name, payload)`, sent before or after. */
  waitFor<T = unknown>(name: string, options?: WaitForOptions<T>): Promise<T>
  /** Creates a run of another job together with this step. */
  trigger<TInput, TOutput>(
    name: string,
    job: JobRef<TInput, TOutput>,
    payload: TInput,
    options?: ChildOptions,
  ): Promise<ChildRun<TOutput>>
  /** The output of a run that `trigger` created, for which the run waits in the database. */
  wait<TOutput>(name: string, run: ChildRun<TOutput>): Promise<TOutput>
  /**
   * Creates a run of another job for each payload, in one step: each of them once, however often the step starts.
   * `limit`: so many of them run at a time.
   */
  triggerAll<TInput, TOutput>(
    name: string,
    job: JobRef<TInput, TOutput>,
    payloads: readonly TInput[],
    options?: TriggerAllOptions,
  ): Promise<ChildRuns<TOutput>>
  /**
   * Waits for many runs in one step, and gives their outputs in order. `failures: 'values'` tells of each run what became
   * of it. Where the results of all are larger than a value may be, wait for them in parts: `{ from, count }`.
   */
  waitAll<TOutput>(
    name: string,
    children: ChildRuns<TOutput> | readonly ChildRun<TOutput>[],
    options: WaitAllOptions & { readonly failures: 'values' },
  ): Promise<ChildResult<TOutput>[]>
  waitAll<TOutput>(
    name: string,
    children: ChildRuns<TOutput> | readonly ChildRun<TOutput>[],
    options?: WaitAllOptions & { readonly failures?: 'throw' | undefined },
  ): Promise<TOutput[]>
  /** Stores how far the run is. What is left out keeps its last value. */
  progress(current: number, total?: number, message?: string): void
}

type WithBody<Options, Body> = [Body] | [Options, Body]

export function createContext(scope: StepScope, pass: Pass): JobContext {
  const { run } = scope
  function callRun<T>(name: string, ...rest: WithBody<RunStepOptions, StepBody<T>>): Promise<T> {
    return orRefused({ scope, pass, name, calledAt: callRun }, ({ calledAt }) => {
      const { options, body } = bodyOf('ctx.run', name, rest)
      const perform = (_call: unknown, tools: StepTools) => body(tools)
      return runStep({ scope, pass, name, calledAt, kind: 'run', options, perform })
    })
  }
  function callTransaction<T>(
    name: string,
    ...rest: WithBody<TransactionOptions, TransactionBody<T, never>>
  ): Promise<T> {
    return orRefused({ scope, pass, name, calledAt: callTransaction }, (call) =>
      transactionStep({ ...call, ...bodyOf('ctx.transaction', name, rest) }),
    )
  }
  function callStream<T>(name: string, ...rest: WithBody<StreamOptions, StreamBody<T>>): Promise<T> {
    return orRefused({ scope, pass, name, calledAt: callStream }, (call) =>
      streamStep({ ...call, ...bodyOf('ctx.stream', name, rest) }),
    )
  }
  const waits = createWaits(scope, pass)
  return {
    runId: run.id,
    jobName: run.jobName,
    attempt: run.attempt,
    tries: triesOf(run, true),
    get signal() {
      return scope.interruption.signal
    },
    get log() {
      const body = scope.engine.bodyScope.current()
      return scope.logFor(body?.scope === scope ? body.stepName : null)
    },
    run: callRun,
    transaction: callTransaction,
    stream: callStream,
    sleep: waits.sleep,
    waitFor: waits.waitFor,
    trigger: waits.trigger,
    wait: waits.wait,
    triggerAll: waits.triggerAll,
    waitAll: waits.waitAll,
    progress: scope.progress,
  }
}

const NO_OPTIONS = Object.freeze({})

function bodyOf<Options extends object, Body>(call: string, name: string, rest: WithBody<Options, Body>) {
  const [options, body] = rest.length === 1 ? [NO_OPTIONS as Options, rest[0]] : rest
  if (typeof body !== 'function') {
    throw new InvalidOptionError(`${call}("${name}") needs a function as its last argument.`)
  }
  return { options, body }
}

type Waits = Pick<JobContext, 'sleep' | 'waitFor' | 'trigger' | 'wait' | 'triggerAll' | 'waitAll'>

function createWaits(scope: StepScope, pass: Pass): Waits {
  const waits: Waits = {
    sleep: (name, until) => orRefused({ scope, pass, name, calledAt: waits.sleep }, (call) => sleepStep(call, until)),
    waitFor: (name, options = {}) =>
      orRefused({ scope, pass, name, calledAt: waits.waitFor }, (call) => waitForStep(call, options)),
    trigger: (name, job, ...[payload, options = {}]) =>
      orRefused({ scope, pass, name, calledAt: waits.trigger }, (call) =>
        triggerStep({ call, job, payload, options }),
      ) as Promise<ChildRun<never>>,
    wait: (name, run) => orRefused({ scope, pass, name, calledAt: waits.wait }, (call) => waitForChild(call, run)),
    triggerAll: (name, job, ...[payloads, options = {}]) =>
      orRefused({ scope, pass, name, calledAt: waits.triggerAll }, (call) =>
        triggerAllStep({ call, job, payloads, options }),
      ) as Promise<ChildRuns<never>>,
    waitAll: (name: string, children: Children, options: WaitAllOptions = {}) =>
      orRefused({ scope, pass, name, calledAt: waits.waitAll }, (call) =>
        waitForChildren<never>(call, children, options),
      ),
  }
  return waits
}

/** Keeps the last progress of a run, so that a call may leave out what stays the same. */
export function createProgress(scope: Pick<StepScope, 'engine' | 'run' | 'writer'>): StepScope['progress'] {
  const { engine, run, writer } = scope
  let last: Progress | null = run.progress
  return (current, total, message) => {
    if (!Number.isFinite(current) || (total !== undefined && !Number.isFinite(total))) {
      throw new InvalidOptionError(`ctx.progress(${current}, ${total}): both must be finite numbers.`)
    }
    const next = {
      ...last,
      current,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message: toLogText(message) }),
    }
    last = next
    const event = { type: 'run:progress', runId: run.id, jobName: run.jobName, progress: next } as const
    writer.progress(next, event)
    engine.events.emit(event)
  }
}

export function createLogs(
  scope: Pick<StepScope, 'engine' | 'run'> & { readonly writer: Pick<StepScope['writer'], 'log'> },
): StepScope['logFor'] {
  const { engine, run, writer } = scope
  const { environment } = engine
  function write({ data: given, ...line }: Pick<NewLog, 'stepName' | 'level' | 'message'> & { data: unknown }): void {
    const data = toLogData(given)
    const event = { type: 'log:write', runId: run.id, ...line, data } as const
    engine.events.emit(event)
    if (!engine.plugins.recordsLogs()) return
    const log = {
      ...line,
      id: environment.createId(),
      data: data === undefined ? null : JSON.stringify(data),
      timestamp: toInstant(environment.clock.now()),
    }
    writer.log(log, event)
  }
  return (stepName) => ({
    info: (message, data) => write({ stepName, level: 'info', message: toLogText(message), data }),
    warn: (message, data) => write({ stepName, level: 'warn', message: toLogText(message), data }),
    error: (message, data) => write({ stepName, level: 'error', message: toLogText(message), data }),
  })
}
