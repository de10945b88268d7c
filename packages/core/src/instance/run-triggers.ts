import { InvalidOptionError, refuseUnknownOptions } from '../base'
import type { BatchTriggerInput, TriggerItem } from '../client'
import { type Engine, jobOf, noJob } from '../engine'
import { type JobDeclaration, type JobRef, TRIGGER_OPTIONS, type TriggeredRun, type TriggerOptions } from '../job'

/** Triggering jobs that need not be executed, nor registered, here. */
export interface RunTriggers<TOptions> {
  /** As `trigger` of the job's handle. */
  trigger<TInput, TOutput>(
    job: JobRef<TInput, TOutput>,
    payload: TInput,
    options?: TOptions,
  ): Promise<TriggeredRun<TOutput>>
  /**
   * A job by its name. One that is not registered here has no schema: its payload is stored as it is, its run without
   * the job's `timeout` and `version`, and whoever executes it gets what was given.
   */
  trigger(jobName: string, payload?: unknown, options?: TOptions): Promise<TriggeredRun>
  /** All runs or none, in one transaction; the answers are in the order of the items. */
  batchTrigger<TInput, TOutput>(
    job: JobRef<TInput, TOutput>,
    items: readonly BatchTriggerInput<TInput, TOptions>[],
  ): Promise<TriggeredRun<TOutput>[]>
  batchTrigger(jobName: string, items: readonly BatchTriggerInput<unknown, TOptions>[]): Promise<TriggeredRun[]>
}

export type Trigger = (items: readonly TriggerItem[]) => Promise<TriggeredRun[]>

type AnyTriggers = RunTriggers<TriggerOptions>

/** `fixed` are the options that the caller cannot choose. */
export function createTriggers(engine: Engine, trigger: Trigger, fixed?: Pick<TriggerOptions, 'tenant'>): AnyTriggers {
  function knownJob(given: string | { readonly name: string }): JobDeclaration {
    const job = jobOf(engine, given)
    if (job === null) throw noJob(Object(given).name)
    return job
  }
  function optionsOf(call: string, options: TriggerOptions): TriggerOptions {
    if (fixed === undefined) return options
    refuseUnknownOptions(call, options, TRIGGER_OPTIONS)
    return { ...options, ...fixed }
  }
  return {
    trigger: (async (given: string | { readonly name: string }, payload?: unknown, options: TriggerOptions = {}) => {
      const item = { job: knownJob(given), payload, options: optionsOf('trigger()', options) }
      return (await trigger([item]))[0]
    }) as AnyTriggers['trigger'],
    batchTrigger: (async (given: string | { readonly name: string }, items: readonly BatchTriggerInput<unknown>[]) => {
      const job = knownJob(given)
      return trigger(
        toBatch(items).map(({ payload, options = {} }) => {
          return { job, payload, options: optionsOf('An item of batchTrigger()', options) }
        }),
      )
    }) as AnyTriggers['batchTrigger'],
  }
}

function toBatch(items: readonly BatchTriggerInput<unknown>[]): readonly BatchTriggerInput<unknown>[] {
  if (!Array.isArray(items)) throw new InvalidOptionError('batchTrigger() needs a list of { payload, options }.')
  for (const item of items) refuseUnknownOptions('An item of batchTrigger()', item, { payload: true, options: true })
  return items
}
