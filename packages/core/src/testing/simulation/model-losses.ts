import type { RunRecord } from '../../port'
import type { ModelRun } from './model-run'
import { must } from './violation'

/** Workers that hold a suspect: of those that are lost together, one is judged by what it held before. */
export function ownersOfSuspects(runs: Iterable<ModelRun>): ReadonlySet<ModelRun['owner']> {
  return new Set(
    [...runs].filter(({ status, crashes }) => status === 'running' && crashes >= 2).map(({ owner }) => owner),
  )
}

interface LossParams {
  /** Of suspects. */
  readonly owners: ReadonlySet<ModelRun['owner']>
  /** False: the worker left on purpose. */
  readonly isCrash: boolean
}

/** What the loss of its worker means for a run: whether it counts, and how long it keeps the run waiting. */
export function lossOf({ crashes, owner }: ModelRun, { owners, isCrash }: LossParams) {
  if (!isCrash) return { counts: false, longestMs: 0 }
  const isSpared = crashes < 2 && owners.has(owner)
  if (isSpared) return { counts: false, longestMs: crashes === 0 ? 0 : 1000 }
  return { counts: true, longestMs: crashes === 0 ? 0 : Math.min(1000 * 2 ** crashes, 60_000) }
}

interface DueParams {
  readonly record: RunRecord | undefined
  readonly now: number
  readonly longestMs: number
}

/** Its old place, or any instant between half of the wait and all of it. */
export function dueAfterLoss({ wanted, createdAt }: ModelRun, { record, now, longestMs }: DueParams): number {
  if (longestMs === 0) return createdAt
  const availableAt = Date.parse(record?.availableAt ?? '')
  const isRight = availableAt >= now + longestMs / 2 && availableAt <= now + longestMs
  must(isRight, () => `run ${wanted.id} waits for ${availableAt - now} ms, and at most ${longestMs} are right`)
  return availableAt
}
