import { isSuspect, type RecoverParams, type Recovery, recoveryOf, type RunRecord } from '@coji/durably-core/storage'
import type { Draft } from './draft.ts'
import { cancelled, left } from './leave.ts'

/** Takes runs away from holders that are gone. The higher epoch locks the old holder out for ever. */
export function recover(draft: Draft, params: RecoverParams): RunRecord[] {
  const running = draft.state.live().filter(({ status }) => status === 'running')
  const suspects = running.filter(isSuspect)
  const abandoned = running.filter((run) => isAbandoned(draft, run, params))
  abandoned.sort((a, b) => Number(isSuspect(a)) - Number(isSuspect(b)))
  return abandoned.slice(0, params.limit).map((run) => {
    const isBesideSuspect = suspects.some(({ ownerId, id }) => ownerId === run.ownerId && id !== run.id)
    const recovery = recoveryOf({ ...run, isBesideSuspect }, params)
    const { crashCount } = recovery
    return draft.change(run, { ...after(draft, run, recovery), leaseEpoch: run.leaseEpoch + 1, crashCount })
  })
}

function isAbandoned(draft: Draft, run: RunRecord, { deadWorkerId, held }: RecoverParams): boolean {
  if (held.includes(run.id)) return false
  return deadWorkerId === null ? (run.leaseUntil ?? '') <= draft.now : run.ownerId === deadWorkerId
}

function after(draft: Draft, run: RunRecord, { status, delayMs, failure }: Recovery): Partial<RunRecord> {
  if (status === 'cancelled') return cancelled(draft, run)
  if (failure !== null) return { ...left(draft, run, status), error: failure.error, errorDetail: failure.detail }
  return { ...left(draft, run, status), availableAt: delayMs === 0 ? run.createdAt : draft.in(delayMs) }
}
