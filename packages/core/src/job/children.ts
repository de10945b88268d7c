import type { JobDeclaration } from './declare-job'
import type { TriggerOptions } from './trigger-options'

/** A run that a job triggered, for `ctx.wait`. */
export interface ChildRun<TOutput = unknown> {
  readonly id: string
  readonly jobName: string
  /** Types only. */
  readonly types?: { readonly output: TOutput }
}

/** A job as a value, its declaration, or a handle of this instance. */
export type JobRef<TInput, TOutput> =
  | Pick<JobDeclaration<string, TInput, TOutput>, 'name' | 'types'>
  | {
      readonly name: string
      trigger(payload: TInput): Promise<unknown>
      wait(runId: string): Promise<{ readonly output: TOutput }>
    }

/**
 * A child belongs to the tenant of its parent. A key that is taken hands back its run: a refusal would come with the
 * commit of the step, too late for the job to deal with.
 */
export type ChildOptions = Omit<TriggerOptions, 'tenant' | 'onConflict' | 'transaction' | 'debounce' | 'batch'>

/** The runs that a job triggered with one call, for `ctx.waitAll`. */
export interface ChildRuns<TOutput = unknown> {
  readonly jobName: string
  /** In the order of the payloads. */
  readonly ids: readonly string[]
  readonly count: number
  /** Types only. */
  readonly types?: { readonly output: TOutput }
}

/** How the runs of `ctx.triggerAll` may run. */
export interface TriggerAllOptions extends Omit<ChildOptions, 'idempotencyKey'> {
  /** How many of them may run at a time. Default: as many as there are workers for. */
  readonly limit?: number | undefined
}

/** Which of the runs `ctx.waitAll` waits for, and what it makes of those that did not complete. */
export interface WaitAllOptions {
  /**
   * `throw`: when all have ended, the first that did not complete (in their order) makes the wait fail, as it would
   * make `ctx.wait`. `values`: each outcome is a `ChildResult`.
   */
  readonly failures?: 'throw' | 'values' | undefined
  /** Waits for the part of the runs that begins here: the results of all may be larger than a value can be. */
  readonly from?: number | undefined
  /** How many runs that part has. Default: all that are left. */
  readonly count?: number | undefined
}

/** What became of one run that `ctx.waitAll` waited for with `failures: 'values'`. */
export type ChildResult<TOutput = unknown> =
  | { readonly ok: true; readonly id: string; readonly output: TOutput }
  | {
      readonly ok: false
      readonly id: string
      readonly status: 'failed' | 'timed_out' | 'cancelled'
      readonly error: string
    }

export type Children = ChildRuns | readonly ChildRun[]
