import { instantIn, InvalidOptionError, isStorableText, type OptionNames } from '../base'
import type { RunQuery, StepKind } from '../port'

/** What a run can wait for: a retry or a decision about it, or in its job a signal, an instant, or the end of other runs. */
export type Wait = 'retry' | 'unpark' | 'signal' | 'time' | 'child'

/** What runs are looked for by, beside their status, job, tenant and labels. */
export interface RunSearch {
  /** Created then or later: a `Date`, or its ISO text. */
  readonly createdFrom?: Date | string | undefined
  /** Created earlier. */
  readonly createdBefore?: Date | string | undefined
  /** Those whose id begins so. */
  readonly idPrefix?: string | undefined
  /** Those whose last error has this `code`. */
  readonly errorCode?: string | undefined
  /** Those that wait for this at present. */
  readonly waitsFor?: Wait | undefined
  /** The children of this run: what it triggered, and what its failure called. */
  readonly parent?: string | undefined
}

export const RUN_SEARCH: OptionNames<RunSearch> = {
  createdFrom: true,
  createdBefore: true,
  idPrefix: true,
  errorCode: true,
  waitsFor: true,
  parent: true,
}

const WAITS: Readonly<Record<Wait, Pick<RunQuery, 'waitsForRetry' | 'parked' | 'waitsForKinds'>>> = {
  retry: { waitsForRetry: true },
  unpark: { parked: true },
  signal: { waitsForKinds: ['signal'] },
  time: { waitsForKinds: ['sleep', 'run', 'stream', 'transaction'] satisfies StepKind[] },
  child: { waitsForKinds: ['child', 'waitAll'] },
}

export function toSearch({ createdFrom, createdBefore, idPrefix, errorCode, waitsFor, parent }: RunSearch): RunQuery {
  refuseBadWord('errorCode', errorCode)
  refuseBadWord('idPrefix', idPrefix)
  refuseBadWord('parent', parent)
  if (waitsFor !== undefined && !Object.hasOwn(WAITS, waitsFor)) {
    throw new InvalidOptionError(`waitsFor must be one of ${Object.keys(WAITS).join(', ')}, not ${String(waitsFor)}.`)
  }
  return {
    ...(createdFrom !== undefined && { createdFrom: instantIn('createdFrom', createdFrom) }),
    ...(createdBefore !== undefined && { createdBefore: instantIn('createdBefore', createdBefore) }),
    ...(idPrefix !== undefined && { idPrefix }),
    ...(errorCode !== undefined && { errorCode }),
    ...(waitsFor !== undefined && WAITS[waitsFor]),
    ...(parent !== undefined && { parentRunId: parent }),
  }
}

function refuseBadWord(name: keyof RunSearch, given: unknown): void {
  if (given === undefined) return
  if (typeof given === 'string' && given !== '' && given.length <= 512 && isStorableText(given)) return
  throw new InvalidOptionError(`${name} must be a text of 1 to 512 characters, not ${String(given)}.`)
}
