import { InvalidOptionError } from '../errors'
import type { NextDue, RunQuery, RunRecord, Scope, StepRecord } from '../storage'
import { copyOf } from './memory'
import type { Memory } from './memory'

export function getRun({ table }: Memory, runId: string, scope: Scope = {}): RunRecord | null {
  const entry = table.find(runId, scope.tenant)
  return entry === undefined ? null : copyOf(entry.record)
}

export function getRuns(memory: Memory, query: RunQuery): RunRecord[] {
  const found = candidates(memory, query).filter((record) => matches(record, query))
  const page = found.sort(newestFirst).filter(isAfter(memory, query))
  return page.slice(0, query.limit ?? page.length).map(copyOf)
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

function candidates({ table }: Memory, { ids }: RunQuery): RunRecord[] {
  if (ids === undefined) return Array.from(table.all(), ({ record }) => record)
  return [...new Set(ids)].flatMap((id) => table.find(id)?.record ?? [])
}

function matches(record: RunRecord, { statuses, jobName, tenant, labels, parentRunId, holdingKey }: RunQuery): boolean {
  return (
    (statuses === undefined || statuses.includes(record.status)) &&
    (jobName === undefined || record.jobName === jobName) &&
    (tenant === undefined || record.tenant === tenant) &&
    (parentRunId === undefined || record.parentRunId === parentRunId) &&
    (holdingKey === undefined || (record.concurrencyKey === holdingKey && record.concurrencySlot !== null)) &&
    Object.entries(labels ?? {}).every(
      ([name, value]) => Object.hasOwn(record.labels, name) && record.labels[name] === value,
    )
  )
}

function newestFirst(a: RunRecord, b: RunRecord): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0
}

function isAfter({ table }: Memory, { cursor, tenant }: RunQuery): (record: RunRecord) => boolean {
  if (cursor === undefined) return () => true
  const last = table.find(cursor, tenant)?.record
  if (last === undefined)
    throw new InvalidOptionError(`There is no run ${cursor} (any more) for the cursor. Start again without one.`)
  return (record) => newestFirst(record, last) > 0
}

function finiteOrNull(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null
}
