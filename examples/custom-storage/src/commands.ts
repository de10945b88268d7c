import {
  afterCancel,
  afterCancelRequest,
  afterFailParked,
  afterPark,
  afterRetry,
  afterUnpark,
  isEnded,
  LIFECYCLE,
  type CommandAnswer,
  type PurgeParams,
  type RunCommand,
  type RunRecord,
  type TransitionName,
} from '@coji/durably-core/storage'
import type { Draft } from './draft.ts'

export function command(draft: Draft, order: RunCommand): CommandAnswer {
  const run = draft.run(order.runId, order.tenant)
  if (run === undefined) return { applied: false, reason: 'not-found' }
  const after = obey(draft, run, order)
  return after === null ? { applied: false, reason: 'wrong-state', run } : { applied: true, run: after }
}

/** `null`: the run is not in a state for it. */
function obey(draft: Draft, run: RunRecord, order: RunCommand): RunRecord | null {
  const isParked = run.waitingFor?.kind === 'unpark'
  switch (order.kind) {
    case 'cancel':
      return cancel(draft, run)
    case 'retry':
      return isFor('retry', run) ? retry(draft, run) : null
    case 'park':
      return isFor('parkPending', run) ? draft.change(run, afterPark(order.reason)) : null
    case 'unpark':
      return isFor('unpark', run) && isParked ? draft.change(run, afterUnpark(run)) : null
    case 'failParked':
      return isFor('failParked', run) && isParked ? draft.change(run, afterFailParked(run, order, draft)) : null
    case 'remove':
      if (!isFor('remove', run)) return null
      draft.remove(run)
      return run
  }
}

function isFor(transition: TransitionName, { status }: RunRecord): boolean {
  return (LIFECYCLE[transition].from as readonly string[]).includes(status)
}

function cancel(draft: Draft, run: RunRecord): RunRecord | null {
  if (isFor('requestCancel', run)) return draft.change(run, afterCancelRequest(run, draft))
  return isFor('cancel', run) ? draft.change(run, afterCancel(run, draft)) : null
}

function retry(draft: Draft, run: RunRecord): RunRecord {
  for (const row of draft.steps(run.id).values()) if (row.status === 'waiting') draft.removeStep(row)
  return draft.change(run, afterRetry(run))
}

/** The oldest go first. */
export function purge(draft: Draft, params: PurgeParams): number {
  const ended = draft.state.runs().filter((run) => isWanted(run, params))
  const byEnd = ended.sort((a, b) => (endOf(a) < endOf(b) ? -1 : 1))
  const beyond = byEnd.slice(0, Math.max(0, byEnd.length - (params.keepNewest ?? 0)))
  const mayGo = (run: RunRecord) => isOldEnough(draft, run, params) && !isNeeded(draft, run)
  const old = beyond.filter(mayGo).slice(0, params.limit)
  for (const run of old) draft.remove(run)
  return old.length
}

/** A run that waits for it, and has not ended, may still ask for its output. */
function isNeeded(draft: Draft, { parentRunId, alsoAwaitedBy }: RunRecord): boolean {
  return [parentRunId ?? '', ...alsoAwaitedBy].some((id) => !isEnded(draft.run(id)?.status ?? 'cancelled'))
}

function endOf({ finishedAt, id }: RunRecord): string {
  return `${finishedAt} ${id}`
}

function isWanted(run: RunRecord, { statuses, tenant, jobNames }: PurgeParams): boolean {
  return (
    statuses.includes(run.status) &&
    isFor('purge', run) &&
    (tenant === undefined || run.tenant === tenant) &&
    (jobNames === undefined || jobNames.includes(run.jobName))
  )
}

function isOldEnough(draft: Draft, { finishedAt }: RunRecord, { olderThanMs, before }: PurgeParams): boolean {
  const at = finishedAt ?? ''
  return (olderThanMs === undefined || at < draft.in(-olderThanMs)) && (before === undefined || at < before)
}
