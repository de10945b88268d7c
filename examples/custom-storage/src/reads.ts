import {
  RUN_STATUSES,
  type NextDue,
  type RunCursor,
  type RunQuery,
  type RunRecord,
  type RunStatus,
  type StatusCounts,
  type StepKind,
  type StepRecord,
} from '@coji/durably-core/storage'
import type { State, StepRow } from './state.ts'

export function findRuns(state: State, query: RunQuery): RunRecord[] {
  const candidates =
    query.ids === undefined ? state.runs() : [...new Set(query.ids)].flatMap((id) => state.run(id) ?? [])
  const found = candidates.filter((run) => matches(run, query) && isWhere(run, query, state)).sort(newestFirst)
  return found.slice(0, query.limit ?? found.length)
}

function matches(run: RunRecord, query: RunQuery): boolean {
  const { statuses, jobNames, waitsForRetry, parked, tenant, labels, parentRunId, holdingKey, cursor } = query
  return (
    (statuses === undefined || statuses.includes(run.status)) &&
    (jobNames === undefined || jobNames.includes(run.jobName)) &&
    (waitsForRetry === undefined || waitsForRetry === (run.waitingFor?.kind === 'retry')) &&
    (parked === undefined || parked === (run.waitingFor?.kind === 'unpark')) &&
    (tenant === undefined || run.tenant === tenant) &&
    (parentRunId === undefined || run.parentRunId === parentRunId) &&
    (holdingKey === undefined || (run.concurrencyKey === holdingKey && run.concurrencySlot !== null)) &&
    (cursor === undefined || newestFirst(run, cursor) > 0) &&
    Object.entries(labels ?? {}).every(([name, value]) => Object.hasOwn(run.labels, name) && run.labels[name] === value)
  )
}

/** Where and when it is found, and what it waits for. */
function isWhere(run: RunRecord, query: RunQuery, state: State): boolean {
  const { createdFrom, createdBefore, idPrefix, errorCode, waitsForKinds } = query
  return (
    (createdFrom === undefined || run.createdAt >= createdFrom) &&
    (createdBefore === undefined || run.createdAt < createdBefore) &&
    (idPrefix === undefined || run.id.startsWith(idPrefix)) &&
    (errorCode === undefined || run.errorDetail?.code === errorCode) &&
    (waitsForKinds === undefined || (isSuspended(run) && waitsFor(state.steps(run.id), waitsForKinds)))
  )
}

function isSuspended({ status, waitingFor }: RunRecord): boolean {
  return status === 'pending' && waitingFor?.kind === 'steps'
}

function waitsFor(steps: readonly StepRow[], kinds: readonly StepKind[]): boolean {
  return steps.some(({ status, kind }) => status === 'waiting' && kinds.includes(kind))
}

function newestFirst(a: RunCursor, b: RunCursor): number {
  const [first, second] = [`${a.createdAt} ${a.id}`, `${b.createdAt} ${b.id}`]
  return first < second ? 1 : first > second ? -1 : 0
}

export function toSteps(rows: readonly StepRow[]): StepRecord[] {
  const now = new Date().toISOString()
  const steps = rows.map((row) => ({ ...row, isDue: row.dueAt !== null && row.dueAt <= now }))
  return steps.sort((a, b) => a.index - b.index)
}

export function countRuns(runs: readonly RunRecord[], upTo = Number.POSITIVE_INFINITY): StatusCounts {
  const counts = Object.fromEntries(RUN_STATUSES.map((status) => [status, 0])) as Record<RunStatus, number>
  for (const { status } of runs) counts[status] += 1
  const waitingFor = (wanted: string) => runs.filter(({ waitingFor }) => waitingFor?.kind === wanted).length
  const all = { ...counts, waitsForRetry: waitingFor('retry'), parked: waitingFor('unpark') }
  return Object.fromEntries(Object.entries(all).map(([name, count]) => [name, Math.min(count, upTo)])) as typeof all
}

export function nextDue(state: State, jobs: readonly string[]): NextDue {
  const live = state.live()
  const pending = live.filter(({ status, availableAt }) => status === 'pending' && availableAt !== null)
  const known = pending.filter(({ jobName }) => jobs.includes(jobName))
  const unknownDue = pending.filter((run) => !jobs.includes(run.jobName) && msUntil(run.availableAt) <= 0)
  return {
    runInMs: smallest(known.map(({ availableAt }) => msUntil(availableAt))),
    leaseInMs: smallest(live.filter((run) => run.leaseUntil !== null).map(({ leaseUntil }) => msUntil(leaseUntil))),
    unknownJobs: [...new Set(unknownDue.map(({ jobName }) => jobName))],
  }
}

function msUntil(instant: string | null): number {
  return Math.max(0, Date.parse(instant ?? '') - Date.now())
}

function smallest(list: readonly number[]): number | null {
  return list.length === 0 ? null : list.reduce((a, b) => Math.min(a, b))
}
