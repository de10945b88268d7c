import { InvalidOptionError, type TriggerOptions } from '../index'

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

const KNOWN: readonly string[] = [
  'delay',
  'runAt',
  'dedupeKey',
  'priority',
  'transaction',
] satisfies (keyof EnqueueOptions)[]

/** Strict: a key that is spelled wrongly would make one task into two. */
export function toTriggerOptions(options: EnqueueOptions = {}): TriggerOptions {
  if (typeof options !== 'object' || options === null)
    throw new InvalidOptionError('The options of a task must be an object.')
  const unknown = Object.keys(options).find((key) => !KNOWN.includes(key))
  if (unknown !== undefined) throw new InvalidOptionError(`enqueue() knows no option "${unknown}".`)
  const { dedupeKey, ...others } = options
  return { ...others, idempotencyKey: dedupeKey }
}
