import {
  afterAssign,
  afterFree,
  afterOrphan,
  type AssignedParams,
  type AssignedToWorker,
  type Assignment,
  isSuspect,
  type Lead,
  LEADER,
  LEADERLESS_MS,
  type OrphanParams,
  type PlacementStorage,
  type RunRecord,
  type TransitionName,
  type WorkerRecord,
} from '../port'
import { takenBy } from './claim'
import { claimsBefore } from './claim-order'
import type { Operations } from './cluster'
import { copyOf, type Memory } from './memory'
import type { RunEntry } from './run-entry'
import { waitingRuns } from './waiting-runs'

export function createPlacement(memory: Memory, { read, write }: Operations): PlacementStorage {
  const { workers, clock } = memory
  return {
    beat: (worker) => write(() => workers.beat(worker, clock)),
    noteJobs: (codeVersion, jobs) => write(() => workers.noteJobs(codeVersion, jobs, clock)),
    getWorkers: () => read(() => getWorkers(memory)),
    getJobs: () => read(() => workers.jobs()),
    forgetWorkers: (lead, silentForMs) =>
      write(() => (memory.leads.isCurrent(lead) ? forgetWorkers(memory, silentForMs) : 0)),
    waiting: (query) => read(() => waitingRuns(memory, query)),
    assign: (lead, assignments) => write(() => assignments.map((each) => assign(memory, lead, each))),
    assigned: (workerId, limit) => read(() => assigned(memory, workerId, limit)),
    start: (params) => write(() => start(memory, params)),
    decline: (params) => write(() => decline(memory, params)),
    orphan: (params) => write(() => orphan(memory, params)),
    free: (limit) => write(() => free(memory, limit)),
  }
}

function getWorkers({ workers, table, clock }: Memory): readonly WorkerRecord[] {
  return workers.all().map(({ aliveUntil: _aliveUntil, ttlMs: _ttlMs, ...worker }) => {
    const { workerId } = worker
    const running = [...table.running].filter(({ lease }) => lease?.ownerId === workerId)
    const held = [...table.placed].filter(({ record }) => isAssignedTo(record, workerId))
    const holdsSuspect = [...running, ...held].some(({ record }) => isSuspect(record))
    const counts = { assigned: held.length, running: running.length, holdsSuspect }
    return { ...worker, isAlive: workers.isAlive(workerId, clock), ...counts }
  })
}

function forgetWorkers(memory: Memory, silentForMs: number): number {
  const since = memory.clock.in(-silentForMs)
  const idle = getWorkers(memory).filter(
    ({ isAlive, lastBeatAt, assigned, running }) => !isAlive && lastBeatAt <= since && assigned + running === 0,
  )
  for (const { workerId } of idle) memory.workers.remove(workerId)
  memory.workers.forgetJobs(since)
  return idle.length
}

function assign(memory: Memory, lead: Lead, { runId, version, workerId, events }: Assignment): boolean {
  const { table, rules, leads, clock } = memory
  const entry = table.find(runId)
  if (entry === undefined || !isAsRead(memory, entry, { transition: 'assign', version })) return false
  if (!rules.allows('assign', 'leader', () => leads.isCurrent(lead))) return false
  const { record } = entry
  if (!rules.allows('assign', 'slot', () => table.queue.roomFor(record) > 0)) return false
  const slot = table.queue.slotFor(record)
  table.change(entry, afterAssign(record, { workerId, leaderEpoch: lead.epoch, slot }, clock), events)
  return true
}

function assigned({ table, leads, clock }: Memory, workerId: string, limit: number): AssignedToWorker {
  const runs = [...table.placed]
    .filter(({ record }) => isAssignedTo(record, workerId))
    .sort((a, b) => (claimsBefore(a, b) ? -1 : 1))
    .slice(0, limit)
    .map(({ record }) => {
      const { id: runId, version, jobName } = record
      return { runId, version, jobName, isSuspect: isSuspect(record) }
    })
  return { runs, isLed: leads.wasLed(LEADER, LEADERLESS_MS, clock) }
}

function start(memory: Memory, params: Parameters<PlacementStorage['start']>[0]): readonly RunRecord[] {
  return ofWorker(memory, 'start', params).flatMap((entry) => {
    if (entry === null) return []
    const { leaderEpoch } = entry.record
    const change = { ...takenBy(memory, entry, params), leaderEpoch }
    return [copyOf(memory.table.change(entry, change, params.events))]
  })
}

function decline(memory: Memory, params: AssignedParams): readonly boolean[] {
  return ofWorker(memory, 'decline', params).map((entry) => {
    if (entry !== null) memory.table.change(entry, afterOrphan(entry.record), params.events)
    return entry !== null
  })
}

function orphan(memory: Memory, { lead, limit, events, ...ages }: OrphanParams): readonly RunRecord[] {
  const { table, rules, leads, clock, workers } = memory
  const isLed = () => leads.wasLed(LEADER, LEADERLESS_MS, clock)
  const mayTakeBack =
    lead === null
      ? rules.allows('orphan', 'leaderless', () => !isLed())
      : rules.allows('orphan', 'leader', () => leads.isCurrent(lead))
  if (!mayTakeBack) return []
  const dueBy = (ms: number, { assignedAt }: RunRecord) => (assignedAt ?? '') <= clock.in(-ms)
  const isOverdue = (record: RunRecord) =>
    dueBy(ages.livingAfterMs, record) ||
    (dueBy(ages.reassignAfterMs, record) && !workers.isAlive(record.assignedWorkerId ?? null, clock))
  return [...(rules.asks('orphan', 'status') ? table.placed : table.all())]
    .filter(({ record }) => rules.allowsFrom('orphan', record.status))
    .filter(({ record }) => rules.allows('orphan', 'overdue', () => isOverdue(record)))
    .slice(0, limit)
    .map((entry) => copyOf(table.change(entry, afterOrphan(entry.record), events)))
}

function free({ table, rules, leads, clock }: Memory, limit: number): number {
  if (!rules.allows('free', 'leaderless', () => !leads.wasLed(LEADER, LEADERLESS_MS, clock))) return 0
  const orphaned = [...table.placed].filter(({ record }) => rules.allowsFrom('free', record.status)).slice(0, limit)
  for (const entry of orphaned) table.change(entry, afterFree(), [])
  return orphaned.length
}

interface Seen {
  readonly transition: TransitionName
  readonly version: number
}

function isAsRead({ rules }: Memory, { record }: RunEntry, { transition, version }: Seen): boolean {
  return (
    rules.allowsFrom(transition, record.status) && rules.allows(transition, 'version', () => record.version === version)
  )
}

/** `null` for those that are not this worker's any more. */
function ofWorker(memory: Memory, transition: 'start' | 'decline', { runs, workerId }: AssignedParams) {
  const { table, rules } = memory
  return runs.map(({ runId, version }) => {
    const entry = table.find(runId)
    if (entry === undefined || !isAsRead(memory, entry, { transition, version })) return null
    return rules.allows(transition, 'assignee', () => entry.record.assignedWorkerId === workerId) ? entry : null
  })
}

function isAssignedTo({ status, assignedWorkerId }: RunRecord, workerId: string): boolean {
  return status === 'assigned' && assignedWorkerId === workerId
}
