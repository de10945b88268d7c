import type { CountQuery, NextDue, RunCursor, RunQuery, RunRecord, Scope, StatusCounts, StepRecord } from '../port'
import { copyOf, type Memory } from './memory'
import { countOf, isParked, waitsForRetry } from './status-counts'

export function getRun({ table }: Memory, runId: string, scope: Scope = {}): RunRecord | null {
  const entry = table.find(runId, scope.tenant)
  return entry === undefined ? null : copyOf(entry.record)
}

export function getRuns(memory: Memory, query: RunQuery): RunRecord[] {
  const page: RunRecord[] = []
  if (query.limit === 0) return page
  for (const record of matching(memory, query)) {
    page.push(copyOf(record))
    if (page.length === query.limit) break
  }
  return page
}

export function counts(
  memory: Memory,
  { upTo = Number.POSITIVE_INFINITY, tenant, jobNames, ...others }: CountQuery,
): StatusCounts {
  const scope = { ...(tenant !== undefined && { tenant }), ...(jobNames !== undefined && { jobNames }) }
  const whole = isEmpty(others) ? memory.table.counts.sum(scope) : countOf(matching(memory, { ...scope, ...others }))
  const capped = Object.entries(whole).map(([name, count]) => [name, Math.min(count, upTo)])
  return Object.fromEntries(capped) as unknown as StatusCounts
}

function isEmpty(conditions: object): boolean {
  return Object.values(conditions).every((condition) => condition === undefined)
}

function* matching(memory: Memory, query: RunQuery): Iterable<RunRecord> {
  for (const record of newestFirst(memory, query)) if (matches(memory, record, query)) yield record
}

export function getSteps({ table, clock }: Memory, runId: string, scope: Scope = {}): StepRecord[] {
  return table.find(runId, scope.tenant)?.steps.read(clock.now()) ?? []
}

export function nextDue({ table, clock }: Memory, jobs: readonly string[]): NextDue {
  const known = new Set(jobs)
  const unknownJobs: string[] = []
  let runInMs = Number.POSITIVE_INFINITY
  let leaseInMs = Number.POSITIVE_INFINITY
  for (const { jobName, at } of table.queue.nextOfEachJob(clock.now())) {
    if (known.has(jobName)) runInMs = Math.min(runInMs, at === null ? 0 : clock.until(at))
    else if (at === null) unknownJobs.push(jobName)
  }
  for (const { record } of table.running) {
    if (record.leaseUntil !== null) leaseInMs = Math.min(leaseInMs, clock.until(record.leaseUntil))
  }
  return { runInMs: finiteOrNull(runInMs), leaseInMs: finiteOrNull(leaseInMs), unknownJobs }
}

/** Those after the cursor, from where it stands on: nothing newer is looked at. */
function* newestFirst({ table }: Memory, { ids, cursor }: RunQuery): Iterable<RunRecord> {
  const isWanted = (record: RunRecord) => cursor === undefined || byAge(record, cursor) > 0
  if (ids === undefined) for (const { record } of table.newestFirst(isWanted)) yield record
  else {
    const named = [...new Set(ids)].flatMap((id) => table.find(id)?.record ?? [])
    yield* named.filter(isWanted).sort(byAge)
  }
}

function matches({ table }: Memory, record: RunRecord, query: RunQuery): boolean {
  const { statuses, jobNames, tenant, labels, parentRunId, holdingKey, waitsForKinds } = query
  return (
    (statuses === undefined || statuses.includes(record.status)) &&
    (jobNames === undefined || jobNames.includes(record.jobName)) &&
    (query.waitsForRetry === undefined || query.waitsForRetry === waitsForRetry(record)) &&
    (query.parked === undefined || query.parked === isParked(record)) &&
    (tenant === undefined || record.tenant === tenant) &&
    (parentRunId === undefined || record.parentRunId === parentRunId) &&
    (holdingKey === undefined || (record.concurrencyKey === holdingKey && record.concurrencySlot !== null)) &&
    (query.createdFrom === undefined || record.createdAt >= query.createdFrom) &&
    (query.createdBefore === undefined || record.createdAt < query.createdBefore) &&
    (query.idPrefix === undefined || record.id.startsWith(query.idPrefix)) &&
    (query.errorCode === undefined || record.errorDetail?.code === query.errorCode) &&
    (waitsForKinds === undefined ||
      (isSuspended(record) && table.find(record.id)?.steps.waitsFor(waitsForKinds) === true)) &&
    Object.entries(labels ?? {}).every(
      ([name, value]) => Object.hasOwn(record.labels, name) && record.labels[name] === value,
    )
  )
}

function isSuspended({ status, waitingFor }: RunRecord): boolean {
  return status === 'pending' && waitingFor?.kind === 'steps'
}

function byAge(a: RunCursor, b: RunCursor): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0
}

function finiteOrNull(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null
}
