import type { ClaimParams, CountQuery, NewRun, PurgeParams, RunCommit, RunRecord, StatusCounts } from '../../port'
import { RUN_STATUSES } from '../../base'
import { type ModelRun, waitingRows } from './model-run'
import { must } from './violation'

export const ENDED: readonly string[] = ['completed', 'failed', 'timed_out', 'cancelled']

type Runs = ReadonlyMap<string, ModelRun>

/** Whether one of the runs must be refused, because of one that is there or before it in the list. */
export function hasConflict(all: Runs, runs: readonly NewRun[]): boolean {
  const first = new Map<string, NewRun>()
  return runs.some((run) => {
    if (run.idempotencyKey === null || all.has(run.id)) return false
    const name = [run.tenant, run.jobName, run.idempotencyKey].join('\n')
    const holder = holderOfKey(all, run)?.wanted ?? first.get(name)
    if (holder === undefined) first.set(name, run)
    return holder !== undefined && run.onConflict === 'reject' && holder.payload !== run.payload
  })
}

export function holderOfKey(all: Runs, { tenant, jobName, idempotencyKey }: NewRun): ModelRun | undefined {
  if (idempotencyKey === null) return undefined
  return [...all.values()].find(
    ({ wanted }) => wanted.tenant === tenant && wanted.jobName === jobName && wanted.idempotencyKey === idempotencyKey,
  )
}

/** In the order in which they must be claimed. */
export function claimableAt(all: Runs, jobs: readonly string[], now: number): ModelRun[] {
  const due = [...all.values()].filter(
    (run) =>
      run.status === 'pending' &&
      run.availableAt !== null &&
      // What is to start at once is due, whatever the clock says.
      (run.availableAt <= now || run.availableAt === run.createdAt) &&
      jobs.includes(run.wanted.jobName) &&
      (run.wanted.concurrencyKey === null || run.slot !== null || freeSlots(all, run).length > 0),
  )
  return due.sort(
    (a, b) =>
      b.wanted.priority - a.wanted.priority ||
      (a.availableAt ?? 0) - (b.availableAt ?? 0) ||
      (a.wanted.id < b.wanted.id ? -1 : 1),
  )
}

export function freeSlots(all: Runs, { wanted }: ModelRun): number[] {
  const ofKey = [...all.values()].filter((other) => isOfKey(other.wanted, wanted))
  const slots = Array.from({ length: wanted.concurrencyLimit }, (_, slot) => slot)
  return slots.filter((slot) => !ofKey.some((other) => other.slot === slot))
}

/** The oldest first. */
export function purgeable(all: Runs, params: PurgeParams, now: number): ModelRun[] {
  const { statuses, olderThanMs = 0, before, keepNewest = 0, jobNames, tenant } = params
  must(
    before === undefined && jobNames === undefined && tenant === undefined,
    () => 'purge with more than the model has',
  )
  const ended = [...all.values()].filter((run) => statuses.includes(run.status) && ENDED.includes(run.status))
  ended.sort((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0) || (a.wanted.id < b.wanted.id ? -1 : 1))
  return ended
    .slice(0, Math.max(0, ended.length - keepNewest))
    .filter((run) => (run.finishedAt ?? 0) < now - olderThanMs && !isNeeded(all, run))
}

/** A run that waits for it is still there and has not ended. */
function isNeeded(all: Runs, { wanted, alsoAwaitedBy }: ModelRun): boolean {
  return [wanted.parentRunId ?? '', ...alsoAwaitedBy].some((id) => all.get(id)?.finishedAt === null)
}

export function countsOf(all: Runs, { tenant, jobNames }: CountQuery): StatusCounts {
  const counted = [...all.values()].filter(
    ({ wanted }) =>
      (tenant === undefined || wanted.tenant === tenant) &&
      (jobNames === undefined || jobNames.includes(wanted.jobName)),
  )
  const entries = RUN_STATUSES.map((status) => [status, counted.filter((run) => run.status === status).length])
  const waitsForRetry = counted.filter(({ waitingFor }) => waitingFor === 'retry').length
  const parked = counted.filter(({ waitingFor }) => waitingFor === 'unpark').length
  return { ...Object.fromEntries(entries), waitsForRetry, parked } as StatusCounts
}

export function whyNot({ status, availableAt, wanted }: ModelRun, { jobs }: ClaimParams, now: number): string {
  const known = jobs.includes(wanted.jobName) ? 'known' : 'not known'
  return `it is ${status}, due at ${availableAt} (now ${now}), its job is ${known}, its key ${wanted.concurrencyKey}`
}

/** Whether a run has ended, or waits rightly: for what has not come, or for a key that such a run keeps. */
export function isSettled(all: Runs, run: ModelRun): boolean {
  return run.finishedAt !== null || isLeftWaiting(all, run) || isBlocked(all, run)
}

function isLeftWaiting(all: Runs, run: ModelRun): boolean {
  const hasCome = waitingRows(run).some(({ kind, waitName }) => {
    if (kind === 'signal') return run.unread.some(({ name }) => name === waitName)
    const child = all.get(waitName ?? '')
    return kind !== 'child' || child === undefined || child.finishedAt !== null
  })
  return run.status === 'pending' && run.availableAt === null && run.waitingFor === 'steps' && !hasCome
}

function isBlocked(all: Runs, run: ModelRun): boolean {
  if (run.status !== 'pending' || run.availableAt === null || run.slot !== null) return false
  if (run.wanted.concurrencyKey === null || freeSlots(all, run).length > 0) return false
  const holders = [...all.values()].filter(({ wanted, slot }) => slot !== null && isOfKey(wanted, run.wanted))
  return holders.every((holder) => isLeftWaiting(all, holder))
}

function isOfKey(one: NewRun, other: NewRun): boolean {
  return one.tenant === other.tenant && one.concurrencyKey === other.concurrencyKey
}

/** The runs that the steps of the commit made or found. */
export function childrenOf(run: ModelRun | undefined, { steps }: RunCommit): unknown[] {
  const withChild = steps.filter((step) => step.child !== null)
  return withChild.map(({ name }) => JSON.parse(run?.liveSteps.get(name)?.output ?? 'null'))
}

export function earliest(instants: readonly (number | null)[]): number | null {
  const known = instants.filter((each) => each !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** Without those that a storage may leave to its next look, because this very one changed them: a child of theirs ended. */
export function mustRecover(abandoned: readonly ModelRun[], recovered: readonly RunRecord[]): ModelRun[] {
  return abandoned.filter(({ wanted }) => {
    const wasWoken = recovered.some(({ parentRunId, finishedAt }) => parentRunId === wanted.id && finishedAt !== null)
    return !wasWoken || recovered.some(({ id }) => id === wanted.id)
  })
}
