import { InvalidOptionError, refuseBadText, refuseUnknownOptions, requireDuration } from '../base'
import type { Engine } from '../engine'
import { TRIGGER_DEBOUNCE, type TriggerDebounce, type TriggerOptions } from '../job'
import { capability, type DebouncedRun, type EnqueueAnswer, type NewRun } from '../port'
import { retriedWrite } from './retried-write'
import { inTurn } from './turns'

/** Only one trigger at a time can wait for others: several at once know of each other. */
export function refuseGathering(options: Omit<TriggerOptions, 'debounce' | 'batch'>): void {
  const name = (['debounce', 'batch'] as const).find((each) => (options as TriggerOptions)[each] !== undefined)
  if (name === undefined) return
  throw new InvalidOptionError(`${name} is for trigger() and triggerAndWait(), outside of jobs and of batches.`)
}

const OTHERS = ['idempotencyKey', 'delay', 'runAt'] as const

/** What says when a run is due, or which run it is, leaves nothing to be decided by others. */
export function refuseOthers(name: 'debounce' | 'batch', options: TriggerOptions): void {
  const other = OTHERS.find((each) => options[each] !== undefined)
  if (other !== undefined) throw new InvalidOptionError(`Give either ${name} or ${other}, not both.`)
}

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
  }
  refuseOthers('debounce', options)
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
  const write = () => retriedWrite(engine, 'the trigger', () => storage.enqueue(debounced))
  return inTurn(engine, [run.tenant, run.jobName, key], write)
}
