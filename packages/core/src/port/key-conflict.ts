import { ConflictError, isSameJson, type Json } from '../base'
import type { RunRecord } from './records'
import type { NewRun } from './writes'

/** What the holder of the key was triggered with: not for everybody who prints the error. */
const payloads = new WeakMap<ConflictError, Json | null>()

/**
 * What a storage throws for `onConflict: 'reject'` when the text of the payload differs from that of the run that has
 * the key: one that is stored, or one that comes earlier in the same list.
 */
export function keyConflict({ idempotencyKey, jobName }: NewRun, holder: RunRecord | NewRun): ConflictError {
  const key = `The idempotency key "${idempotencyKey}" of job "${jobName}"`
  const error =
    'status' in holder
      ? new ConflictError(
          `${key} belongs to run ${holder.id} (${holder.status}), which has a different payload. ` +
            "Use another key, or onConflict: 'return'.",
          holder.id,
          holder.status,
        )
      : new ConflictError(`${key} is twice in one list, with different payloads. Use another key.`, holder.id)
  payloads.set(error, holder.payload)
  return error
}

/**
 * The list as it can be sent again when the payloads differ in nothing but the order of their keys; `null` when they
 * differ. Who sends the text that is stored is not refused.
 */
export function agreeing(runs: readonly NewRun[], error: unknown): readonly NewRun[] | null {
  const held = error instanceof ConflictError ? payloads.get(error) : undefined
  if (held === undefined) return null
  const isReordered = ({ onConflict, idempotencyKey, payload }: NewRun) =>
    onConflict === 'reject' && idempotencyKey !== null && payload !== held && isSameJson(payload, held)
  return runs.some(isReordered) ? runs.map((run) => (isReordered(run) ? { ...run, payload: held } : run)) : null
}
