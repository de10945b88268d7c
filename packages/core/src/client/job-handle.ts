import { refuseInJob } from './calls-in-jobs'
import {
  type CompletedRun,
  type JobDeclaration,
  type Run,
  toRun,
  TRIGGER_OPTIONS,
  type TriggeredRun,
  type TriggerOptions,
} from '../job'
import type { Engine } from '../engine'
import {
  CancelledError,
  InvalidOptionError,
  NotFoundError,
  type OptionNames,
  refuseUnknownOptions,
  RunFailedError,
} from '../base'
import { RUN_FILTER, type RunFilter } from './runs'
import type { TriggerItem } from './trigger'
import { refuseBadWait, WAIT_OPTIONS, type WaitOptions, type Waits } from './waits'

/** One run of a batch. */
export interface BatchTriggerInput<TInput, TOptions = TriggerOptions> {
  readonly payload: TInput
  readonly options?: TOptions | undefined
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
   * `timeout` ms of waiting, when the run goes on. Inside a job use `ctx.trigger` and `ctx.wait`: this one would hold
   * the slot that the other run may need.
   */
  triggerAndWait(payload: TInput, options?: TriggerOptions & WaitOptions): Promise<RunOutput<TOutput>>
  /** Waits for a run triggered before, here or elsewhere. Inside a job use `ctx.wait`. */
  wait(id: string, options?: WaitOptions): Promise<RunOutput<TOutput>>
  /** All runs or none, in one transaction; the answers are in the order of the items. */
  batchTrigger(items: readonly BatchTriggerInput<TInput>[]): Promise<TriggeredRun<TOutput>[]>
  /** `null` also for a run of another job. */
  getRun(id: string): Promise<Run<TOutput> | null>
  getRuns(filter?: RunFilter): Promise<Run<TOutput>[]>
}

export interface JobHandleParams {
  readonly engine: Engine
  readonly job: JobDeclaration
  readonly trigger: (items: readonly TriggerItem[]) => Promise<TriggeredRun[]>
  readonly waits: Waits
  readonly getRun: (id: string) => Promise<Run | null>
  readonly getRuns: (filter: RunFilter) => Promise<Run[]>
}

export const TRIGGER_AND_WAIT_OPTIONS = { ...TRIGGER_OPTIONS, ...WAIT_OPTIONS }
const BATCH_ITEM: OptionNames<BatchTriggerInput<unknown>> = { payload: true, options: true }

export function createJobHandle({ engine, job, trigger, waits, getRun, getRuns }: JobHandleParams): JobHandle {
  async function waitFor(id: string, options: WaitOptions): Promise<RunOutput<unknown>> {
    const { output } = completed(toRun(await waits.untilEnded(id, options)))
    return { id, output }
  }
  async function triggerOne(payload: unknown, options: TriggerOptions): Promise<TriggeredRun> {
    const [run] = await trigger([{ job, payload, options }])
    return run as TriggeredRun
  }
  function toItem(item: BatchTriggerInput<unknown>): TriggerItem {
    refuseUnknownOptions('An item of batchTrigger()', item, BATCH_ITEM)
    const { payload, options = {} } = item
    return { job, payload, options }
  }
  return {
    name: job.name,
    trigger: (payload, options = {}) => triggerOne(payload, options),
    async triggerAndWait(payload, given = {}) {
      refuseUnknownOptions('triggerAndWait()', given, TRIGGER_AND_WAIT_OPTIONS)
      const { timeout, signal, ...options } = given
      refuseBadWait({ timeout, signal })
      refuseInJob(engine, 'triggerAndWait()')
      const { id } = await triggerOne(payload, options)
      return waitFor(id, { timeout, signal })
    },
    async wait(id, options = {}) {
      refuseUnknownOptions('wait()', options, WAIT_OPTIONS)
      refuseBadWait(options)
      refuseInJob(engine, 'wait()')
      const run = await getRun(id)
      if (run?.jobName !== job.name) throw NotFoundError.run(id)
      return waitFor(id, options)
    },
    async batchTrigger(items) {
      if (!Array.isArray(items)) throw new InvalidOptionError('batchTrigger() needs a list of { payload, options }.')
      return trigger(items.map(toItem))
    },
    async getRun(id) {
      const run = await getRun(id)
      return run?.jobName === job.name ? run : null
    },
    async getRuns(filter = {}) {
      refuseUnknownOptions('getRuns()', filter, RUN_FILTER)
      return getRuns({ ...filter, jobName: job.name })
    },
  }
}

function completed(run: Run): CompletedRun {
  if (run.status === 'completed') return run
  if (run.status === 'cancelled') throw new CancelledError(run.id)
  throw new RunFailedError(run)
}
