import {
  InvalidOptionError,
  type Json,
  MAX_VALUE_BYTES,
  refuseBadText,
  refuseUnknownOptions,
  requireDelay,
  requireInteger,
} from '../base'
import type { Engine } from '../engine'
import { MOST_TOGETHER, TRIGGER_BATCH, type TriggerBatch, type TriggerOptions } from '../job'
import { type BatchedRun, capability, type EnqueueAnswer, type NewRun } from '../port'
import { refuseOthers } from './debounce'
import { retriedWrite } from './retried-write'
import { inTurn } from './turns'

export function refuseBadBatch(batch: TriggerBatch, options: TriggerOptions): void {
  if (typeof batch !== 'object' || batch === null) {
    throw new InvalidOptionError('batch must be an object such as { max: 100, within: 5000 }.')
  }
  refuseUnknownOptions('batch', batch, TRIGGER_BATCH)
  refuseBadText('batch.key', batch.key)
  requireInteger('batch.max', batch.max, { from: 1, to: MOST_TOGETHER })
  requireDelay('batch.within', batch.within)
  refuseOthers('batch', options)
  if (options.debounce !== undefined) throw new InvalidOptionError('Give either batch or debounce, not both.')
}

interface BatchParams {
  readonly batch: TriggerBatch
  readonly transaction: object | null
}

/** Creates the run, or appends its entries to the one that is there. */
export async function enqueueBatched(
  engine: Engine,
  run: NewRun,
  { batch: { key = '', max, within }, transaction }: BatchParams,
): Promise<EnqueueAnswer> {
  const storage = capability(engine.storage, 'debounce', 'trigger({ batch })')
  const isFull = entriesIn(run.payload, max) === max
  // A job may be triggered with debounce as well, of which no run gets a list.
  const own = { key: `batch ${key}`, max, maxBytes: MAX_VALUE_BYTES }
  const batched: BatchedRun = { run: { ...run, start: { afterMs: isFull ? 0 : within } }, ...own }
  if (transaction !== null) return storage.join(batched, transaction)
  const write = () => retriedWrite(engine, 'the trigger', () => storage.join(batched))
  return inTurn(engine, [run.tenant, run.jobName, own.key], write)
}

function entriesIn(payload: Json | null, max: number): number {
  const list: unknown = JSON.parse(payload ?? 'null')
  if (Array.isArray(list) && list.length >= 1 && list.length <= max) return list.length
  throw new InvalidOptionError(`With batch the payload must be a list of 1 to ${max} entries.`)
}
