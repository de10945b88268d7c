import type { OptionNames } from '../base'

/** Many triggers, one run. */
export interface TriggerDebounce {
  /** Which triggers belong together, of one job and tenant. Default: all of them. */
  readonly key?: string | undefined
  /** The run starts so many milliseconds after the last trigger. */
  readonly wait: number
  /** And so many after the first one at the latest. Default: however long triggers keep coming. */
  readonly maxWait?: number | undefined
}

/** Many triggers, one run with the entries of all of them. */
export interface TriggerBatch {
  /** Which triggers belong together, of one job and tenant. Default: all of them. */
  readonly key?: string | undefined
  /** So many entries are enough: the run starts. No run has more. */
  readonly max: number
  /** The run starts so many milliseconds after the first trigger, however few entries it has. */
  readonly within: number
}

/** How and when a run may run. */
export interface TriggerOptions {
  /** A second trigger of the same job with the same key gets the run of the first, for as long as that run exists. */
  readonly idempotencyKey?: string | undefined
  /** When the key was used for a different payload: hand back its run (the default), or throw `ConflictError`. */
  readonly onConflict?: 'return' | 'reject' | undefined
  /** Runs with one key take turns, across all jobs of the tenant. */
  readonly concurrencyKey?: string | undefined
  /** How many runs of the key may run at a time. Default 1. */
  readonly concurrencyLimit?: number | undefined
  /** Keep the key from the first start to the end, also while the run waits or is retried. */
  readonly holdKeyWhileWaiting?: boolean | undefined
  /** Milliseconds until it may start. */
  readonly delay?: number | undefined
  /** The instant from which it may start. */
  readonly runAt?: Date | string | undefined
  /**
   * While a run triggered with the same key has not begun, another trigger makes no second one: it gives that run its own
   * payload and puts it off again. What it answers is then `deduplicated`. A number is the `wait`.
   */
  readonly debounce?: number | TriggerDebounce | undefined
  /**
   * The payload is a list. While a run triggered with the same key has not begun and has room, another trigger appends its
   * entries to the list of that one. What it answers is then `deduplicated`.
   */
  readonly batch?: TriggerBatch | undefined
  /** Higher starts first. Default 0. */
  readonly priority?: number | undefined
  /** Whose run it is, for `durably.scoped({ tenant })`. Default: nobody's in particular. */
  readonly tenant?: string | undefined
  /**
   * A transaction of the caller's on the database of durably (Kysely's `trx`, or an object with `query(sql, params)`):
   * the run is created with it or not at all. A worker of this process hears of it by polling, unless the transaction is
   * one of `durably.transaction()`.
   */
  readonly transaction?: unknown
  /** For `getRuns({ labels })`. Up to 32. */
  readonly labels?: Readonly<Record<string, string>> | undefined
}

export const TRIGGER_DEBOUNCE: OptionNames<TriggerDebounce> = { key: true, wait: true, maxWait: true }
export const TRIGGER_BATCH: OptionNames<TriggerBatch> = { key: true, max: true, within: true }

export const TRIGGER_OPTIONS: OptionNames<TriggerOptions> = {
  idempotencyKey: true,
  onConflict: true,
  concurrencyKey: true,
  concurrencyLimit: true,
  holdKeyWhileWaiting: true,
  delay: true,
  runAt: true,
  debounce: true,
  batch: true,
  priority: true,
  tenant: true,
  transaction: true,
  labels: true,
}
