import { isSuspect, type RecoverParams, type Recovery, recoveryOf, type RunRecord } from '../port'
import { asCancelled, leaveRunning } from './leave'
import { copyOf, frozenCopy, type Memory } from './memory'
import type { RunEntry } from './run-entry'
import type { RunChange } from './run-table'

export function recover(memory: Memory, params: RecoverParams): RunRecord[] {
  const { table, rules } = memory
  const held = new Set(params.held)
  const abandoned: RunEntry[] = []
  for (const entry of rules.concernsRunningOnly('recover') ? table.running : table.all()) {
    if (isAbandoned(memory, entry, params) && rules.allows('recover', 'notHeld', () => !held.has(entry.record.id))) {
      abandoned.push(entry)
    }
  }
  if (abandoned.length === 0) return []
  const owners = ownersOfSuspects(memory)
  abandoned.sort((a, b) => Number(isSuspect(a.record)) - Number(isSuspect(b.record)))
  return abandoned.slice(0, params.limit).map((entry) => copyOf(recoverOne(memory, entry, { params, owners })))
}

/** As of before the first run is recovered: all runs of a worker are judged alike. */
function ownersOfSuspects({ table }: Memory): ReadonlySet<string> {
  const owners = new Set<string>()
  for (const { record, lease } of table.running) if (isSuspect(record) && lease !== null) owners.add(lease.ownerId)
  return owners
}

function isAbandoned({ rules, clock }: Memory, entry: RunEntry, { deadWorkerId }: RecoverParams): boolean {
  const { lease } = entry
  if (lease === null || !rules.allowsFrom('recover', entry.record.status)) return false
  return rules.allows('recover', 'expired', () =>
    deadWorkerId === null ? lease.until <= clock.now() : lease.ownerId === deadWorkerId,
  )
}

interface Judgement {
  readonly params: RecoverParams
  readonly owners: ReadonlySet<string>
}

function recoverOne(memory: Memory, entry: RunEntry, { params, owners }: Judgement): RunRecord {
  const { record, lease } = entry
  const recovery = recoveryOf({ ...record, isBesideSuspect: owners.has(lease?.ownerId ?? '') }, params)
  const { crashCount, events } = recovery
  entry.lease = null
  const change = { ...changeOf(memory, entry, recovery), leaseEpoch: record.leaseEpoch + 1, crashCount }
  return memory.table.change(entry, change, events)
}

function changeOf(memory: Memory, entry: RunEntry, { status, delayMs, failure }: Recovery): RunChange {
  if (status === 'cancelled') return asCancelled(memory, entry)
  const left = leaveRunning(memory, entry, status)
  if (failure !== null) return { ...left, error: failure.error, errorDetail: frozenCopy(failure.detail) }
  return { ...left, availableAt: delayMs === 0 ? entry.record.createdAt : memory.clock.in(delayMs) }
}
