import { crashBackoffMs, type RecoverParams, type RunRecord } from '@coji/durably-core'
import type { Draft } from './draft.ts'
import { cancelled, left } from './leave.ts'

/** Takes runs away from holders that are gone. The higher epoch locks the old holder out for ever. */
export function recover(draft: Draft, params: RecoverParams): RunRecord[] {
  const abandoned = draft.state.live().filter((run) => isAbandoned(draft, run, params))
  return abandoned.slice(0, params.limit).map((run) =>
    draft.change(run, {
      ...after(draft, run, params),
      leaseEpoch: run.leaseEpoch + 1,
      crashCount: run.crashCount + 1,
    }),
  )
}

function isAbandoned(draft: Draft, run: RunRecord, { deadWorkerId, held }: RecoverParams): boolean {
  if (run.status !== 'running' || held.includes(run.id)) return false
  return deadWorkerId === null ? (run.leaseUntil ?? '') <= draft.now : run.ownerId === deadWorkerId
}

function after(draft: Draft, run: RunRecord, { maxCrashes, crashLimit }: RecoverParams): Partial<RunRecord> {
  if (run.cancelRequestedAt !== null) return cancelled(draft, run)
  const crashes = run.crashCount + 1
  if (crashes >= maxCrashes) {
    return { ...left(draft, run, 'failed'), error: crashLimit.error, errorDetail: crashLimit.detail }
  }
  const delayMs = crashBackoffMs(crashes)
  return { ...left(draft, run, 'pending'), availableAt: delayMs === 0 ? run.createdAt : draft.in(delayMs) }
}
