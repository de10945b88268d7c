import { afterRecovery, isSuspect, recoveryOf, type RecoverParams, type RunRecord } from '@coji/durably-core/storage'
import type { Draft } from './draft.ts'

/** Takes runs away from holders that are gone. The higher epoch locks the old holder out for ever. */
export function recover(draft: Draft, params: RecoverParams): RunRecord[] {
  const running = draft.state.live().filter(({ status }) => status === 'running')
  const suspects = running.filter(isSuspect)
  const abandoned = running.filter((run) => isAbandoned(draft, run, params))
  abandoned.sort((a, b) => Number(isSuspect(a)) - Number(isSuspect(b)))
  return abandoned.slice(0, params.limit).map((run) => {
    const isBesideSuspect = suspects.some(({ ownerId, id }) => ownerId === run.ownerId && id !== run.id)
    return draft.change(run, afterRecovery(run, recoveryOf({ ...run, isBesideSuspect }, params), draft))
  })
}

function isAbandoned(draft: Draft, run: RunRecord, { deadWorkerId, held }: RecoverParams): boolean {
  if (held.includes(run.id)) return false
  return deadWorkerId === null ? (run.leaseUntil ?? '') <= draft.now : run.ownerId === deadWorkerId
}
