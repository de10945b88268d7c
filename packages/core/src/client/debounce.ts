import { InvalidOptionError, LONGEST_DELAY_MS, refuseBadText, refuseUnknownOptions, requireDuration } from '../base'
import type { Engine } from '../engine'
import { TRIGGER_DEBOUNCE, type TriggerDebounce, type TriggerOptions } from '../job'
import { capability, type DebouncedRun, type EnqueueAnswer, type NewRun } from '../port'
import { retriedWrite } from './retried-write'

/** Only one trigger at a time can be put off: of several at once it would be the last one anyway. */
export function refuseDebounce(options: Omit<TriggerOptions, 'debounce'>): void {
  const { debounce }: TriggerOptions = options
  if (debounce === undefined) return
  throw new InvalidOptionError('debounce is for trigger() and triggerAndWait(), outside of jobs and of batches.')
}

const OTHERS = ['idempotencyKey', 'delay', 'runAt'] as const

type Given = NonNullable<TriggerOptions['debounce']>

function toDebounce(given: Given): TriggerDebounce {
  return typeof given === 'number' ? { wait: given } : given
}

export function refuseBadDebounce(given: Given, options: TriggerOptions): void {
  const debounce = toDebounce(given)
  if (typeof debounce !== 'object' || debounce === null) {
    throw new InvalidOptionError('debounce must be milliseconds, or an object such as { wait: 5000 }.')
  }
  refuseUnknownOptions('debounce', debounce, TRIGGER_DEBOUNCE)
  const { key, wait, maxWait } = debounce
  refuseBadText('debounce.key', key)
  for (const [name, ms] of Object.entries({ wait, maxWait: maxWait ?? wait })) {
    requireDuration(`debounce.${name}`, ms)
    if (ms > LONGEST_DELAY_MS) throw new InvalidOptionError(`debounce.${name} must be 100 years at most.`)
  }
  const other = OTHERS.find((name) => options[name] !== undefined)
  if (other !== undefined) throw new InvalidOptionError(`Give either debounce or ${other}, not both.`)
}

/** Creates the run, or puts off the one that is there. */
export function enqueueDebounced(
  engine: Engine,
  run: NewRun,
  { debounce, transaction }: { readonly debounce: Given; readonly transaction: object | null },
): Promise<EnqueueAnswer> {
  const { key = '', wait, maxWait = null } = toDebounce(debounce)
  const storage = capability(engine.storage, 'debounce', 'trigger({ debounce })')
  const start = { afterMs: Math.min(wait, maxWait ?? wait) }
  const debounced: DebouncedRun = { run: { ...run, start }, key, waitMs: wait, maxWaitMs: maxWait }
  if (transaction !== null) return storage.enqueue(debounced, transaction)
  return retriedWrite(engine, 'the trigger', () => storage.enqueue(debounced))
}
