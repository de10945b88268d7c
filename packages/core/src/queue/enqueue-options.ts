import { InvalidOptionError, type OptionNames, refuseUnknownOptions } from '../base'
import type { TriggerOptions } from '../job'
import { DEFAULTS } from '../client'

/** When and in which order a task runs. */
export interface EnqueueOptions {
  /** Milliseconds until it may run. */
  readonly delay?: number | undefined
  /** The instant from which it may run. */
  readonly runAt?: Date | string | undefined
  /** A second task of the same type and key is the first one, for as long as that is kept. */
  readonly dedupeKey?: string | undefined
  /** Higher runs first. Default 0. */
  readonly priority?: number | undefined
  /** A transaction of the caller's on the database of the queue: the task is there with it, or not at all. */
  readonly transaction?: unknown
}

const OPTIONS: OptionNames<EnqueueOptions> = {
  delay: true,
  runAt: true,
  dedupeKey: true,
  priority: true,
  transaction: true,
}

export function toTriggerOptions(options?: EnqueueOptions): TriggerOptions {
  if (options === undefined) return DEFAULTS
  refuseUnknownOptions('enqueue()', options, OPTIONS)
  const { dedupeKey, ...others } = options
  if (dedupeKey === '') throw new InvalidOptionError('dedupeKey must not be empty: give a text, or leave it out.')
  return { ...others, idempotencyKey: dedupeKey }
}
