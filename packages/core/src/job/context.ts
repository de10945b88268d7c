import type {
  ChildOptions,
  ChildResult,
  ChildRun,
  ChildRuns,
  JobRef,
  TriggerAllOptions,
  WaitAllOptions,
} from './children'
import type {
  RunStepOptions,
  StepBody,
  StepLog,
  StreamBody,
  StreamOptions,
  TransactionBody,
  TransactionOptions,
  WaitForOptions,
} from './step-options'

/** What a job gets besides its payload. */
export interface JobContext {
  readonly runId: string
  readonly jobName: string
  /** The instant of its schedule; `null` for a run that no schedule created, and for one that was started by hand. */
  readonly scheduledFor: string | null
  /** 1 at first; counts executions that ended by an error of the job. Crashes and waits do not count. */
  readonly attempt: number
  /**
   * 1 at first, and after a retry by hand; also counts executions that ended with their worker, back to the last
   * recorded step. Going on after a wait does not count.
   */
  readonly tries: number
  /** Aborts when this execution has to end early; the reason is an `ExecutionAbortedError`. */
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
