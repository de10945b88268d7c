import { isSuspect, type Waiting, type WaitingQuery, type WaitingRun } from '../port'
import { claimsBefore } from './claim-order'
import type { Memory } from './memory'
import type { RunEntry } from './run-entry'

/** What a leader may place: it looks at every run, which is enough for what fits into the memory of one process. */
export function waitingRuns(memory: Memory, { jobs, suspectsOf, from, tenants, limitEach }: WaitingQuery): Waiting {
  const { table } = memory
  const groups = new Map<string, RunEntry[]>()
  for (const entry of table.all()) {
    const { jobName, tenant, status } = entry.record
    if (!jobs.includes(jobName) || !mayStart(memory, entry)) continue
    if (isSuspect(entry.record) && !suspectsOf.includes(jobName)) continue
    const name = JSON.stringify(status === 'orphaned' ? [] : [jobName, tenant])
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [entry])
    else group.push(entry)
  }
  const headOf = (group: readonly RunEntry[]) =>
    [...group].sort((a, b) => (claimsBefore(a, b) ? -1 : 1)).slice(0, limitEach)
  const runs: RunEntry[] = headOf(groups.get('[]') ?? [])
  const upTo: { jobName: string; tenant: string }[] = []
  for (const jobName of jobs) {
    const after = from.find((place) => place.jobName === jobName)?.tenant ?? ''
    const names = [...groups.keys()].map((name) => JSON.parse(name) as readonly string[])
    const own = names.flatMap(([job, tenant]) => (job === jobName && tenant !== undefined ? [tenant] : []))
    const next = own.filter((tenant) => tenant > after).sort()
    const looked = next.slice(0, tenants)
    const last = looked.at(-1)
    if (looked.length < next.length && last !== undefined) upTo.push({ jobName, tenant: last })
    for (const tenant of ['', ...looked]) runs.push(...headOf(groups.get(JSON.stringify([jobName, tenant])) ?? []))
  }
  return { runs: runs.map((entry) => toWaiting(memory, entry)), loads: loadsOf(memory, jobs), upTo }
}

function mayStart({ table, clock, jobs: { paused } }: Memory, { record }: RunEntry): boolean {
  if (record.status !== 'pending' && record.status !== 'orphaned') return false
  const isDue = record.availableAt !== null && record.availableAt <= clock.now()
  return isDue && !paused.has(record.jobName) && table.queue.roomFor(record) > 0
}

function toWaiting({ table }: Memory, { record }: RunEntry): WaitingRun {
  const { id: runId, version, jobName, tenant, priority, availableAt, concurrencyKey, concurrencySlot } = record
  const needsSlot = concurrencySlot === null
  return {
    ...{ runId, version, jobName, tenant, priority, availableAt: availableAt ?? '', isSuspect: isSuspect(record) },
    concurrencyKey: needsSlot ? concurrencyKey : null,
    roomOfKey: Math.min(table.queue.roomFor(record), record.concurrencyLimit),
  }
}

function loadsOf({ table }: Memory, jobs: readonly string[]) {
  const held = new Map<string, number>()
  for (const { record } of [...table.running, ...table.placed]) {
    if (record.status === 'orphaned' || !jobs.includes(record.jobName)) continue
    held.set(record.tenant, (held.get(record.tenant) ?? 0) + 1)
  }
  return [...held].map(([tenant, count]) => ({ tenant, held: count }))
}
