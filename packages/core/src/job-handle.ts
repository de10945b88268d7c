import type { JobDefinition } from './define-job'
import { CancelledError, NotFoundError, RunFailedError } from './errors'
import type { CompletedRun, Run, TriggeredRun } from './run'
import { toRun } from './run'
import type { RunFilter } from './runs'
import type { TriggerItem, TriggerOptions } from './trigger'
import type { WaitOptions, Waits } from './waits'

/** One run of a batch. */
export interface BatchTriggerInput<TInput> {
  readonly payload: TInput
  readonly options?: TriggerOptions | undefined
}

/** What `wait` and `triggerAndWait` resolve with. */
export interface RunOutput<TOutput> {
  readonly id: string
  readonly output: TOutput
}

/** A registered job: triggers runs of it and reads them with its types. */
export interface JobHandle<TName extends string = string, TInput = unknown, TOutput = unknown> {
  readonly name: TName
  /** Stores a run; a worker, here or elsewhere, executes it. Resolves when it is stored. */
  trigger(payload: TInput, options?: TriggerOptions): Promise<TriggeredRun<TOutput>>
  /**
   * Triggers and waits for the end. Rejects with `RunFailedError`, `CancelledError`, or `TimeoutError` after
   * `timeout` ms of waiting, when the run goes on. Inside a job it holds the job's slot, which the other run may need.
   */
  triggerAndWait(payload: TInput, options?: TriggerOptions & WaitOptions): Promise<RunOutput<TOutput>>
  /** Waits for a run triggered before, here or elsewhere. */
  wait(id: string, options?: WaitOptions): Promise<RunOutput<TOutput>>
  /** All runs or none, in one transaction; the answers are in the order of the items. */
  batchTrigger(items: readonly BatchTriggerInput<TInput>[]): Promise<TriggeredRun<TOutput>[]>
  /** `null` also for a run of another job. */
  getRun(id: string): Promise<Run<TOutput> | null>
  getRuns(filter?: RunFilter): Promise<Run<TOutput>[]>
}

export interface JobHandleParams {
  readonly job: JobDefinition
  readonly trigger: (items: readonly TriggerItem[]) => Promise<TriggeredRun[]>
  readonly waits: Waits
  readonly getRun: (id: string) => Promise<Run | null>
  readonly getRuns: (filter: RunFilter) => Promise<Run[]>
}

export function createJobHandle({ job, trigger, waits, getRun, getRuns }: JobHandleParams): JobHandle {
  async function waitFor(id: string, options: WaitOptions): Promise<RunOutput<unknown>> {
    const { output } = completed(toRun(await waits.untilEnded(id, options)))
    return { id, output }
  }
  async function triggerOne(payload: unknown, options: TriggerOptions): Promise<TriggeredRun> {
    const [run] = await trigger([{ job, payload, options }])
    return run as TriggeredRun
  }
  return {
    name: job.name,
    trigger: (payload, options = {}) => triggerOne(payload, options),
    async triggerAndWait(payload, { timeout, signal, ...options } = {}) {
      signal?.throwIfAborted()
      const { id } = await triggerOne(payload, options)
      return waitFor(id, { timeout, signal })
    },
    async wait(id, options = {}) {
      const run = await getRun(id)
      if (run?.jobName !== job.name) throw NotFoundError.run(id)
      return waitFor(id, options)
    },
    batchTrigger: (items) => trigger(items.map(({ payload, options = {} }) => ({ job, payload, options }))),
    async getRun(id) {
      const run = await getRun(id)
      return run?.jobName === job.name ? run : null
    },
    getRuns: (filter = {}) => getRuns({ ...filter, jobName: job.name }),
  }
}

function completed(run: Run): CompletedRun {
  if (run.status === 'completed') return run
  if (run.status === 'cancelled') throw new CancelledError(run.id)
  throw new RunFailedError(run)
}
