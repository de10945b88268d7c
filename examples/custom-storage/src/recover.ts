import { isSuspect, recoveryOf, type Recovery, type RecoverParams, type RunRecord } from '@coji/durably-core'
import type { Draft } from './draft.ts'
import { cancelled, left } from './leave.ts'

/** Takes runs away from holders that are gone. The higher epoch locks the old holder out for ever. */
export function recover(draft: Draft, params: RecoverParams): RunRecord[] {
  const live = draft.state.live()
  const abandoned = live.filter((run) => isAbandoned(draft, run, params))
  const suspectsLast = abandoned.sort((a, b) => Number(isSuspect(a)) - Number(isSuspect(b)))
  return suspectsLast.slice(0, params.limit).map((run) => {
    const isBesideSuspect = live.some(({ id, ownerId, ...other }) => {
      return other.status === 'running' && ownerId === run.ownerId && id !== run.id && isSuspect(other)
    })
    const { status, crashCount, delayMs } = recoveryOf({ ...run, isBesideSuspect }, params)
    return draft.change(run, {
      ...after(draft, run, { status, delayMs }, params),
      leaseEpoch: run.leaseEpoch + 1,
      crashCount,
    })
  })
}

function isAbandoned(draft: Draft, run: RunRecord, { deadWorkerId, held }: RecoverParams): boolean {
  if (run.status !== 'running' || held.includes(run.id)) return false
  return deadWorkerId === null ? (run.leaseUntil ?? '') <= draft.now : run.ownerId === deadWorkerId
}

type Verdict = Pick<Recovery, 'status' | 'delayMs'>

function after(
  draft: Draft,
  run: RunRecord,
  { status, delayMs }: Verdict,
  { crashLimit }: RecoverParams,
): Partial<RunRecord> {
  if (status === 'cancelled') return cancelled(draft, run)
  if (status === 'failed')
    return { ...left(draft, run, 'failed'), error: crashLimit.error, errorDetail: crashLimit.detail }
  return { ...left(draft, run, 'pending'), availableAt: delayMs === 0 ? run.createdAt : draft.in(delayMs) }
}
