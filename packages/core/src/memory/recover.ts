import { isSuspect, recoveryOf, type Recovery } from '../crashes'
import type { RecoverParams, RunRecord } from '../storage'
import { asCancelled, leaveRunning } from './leave'
import { copyOf, frozenCopy } from './memory'
import type { Memory } from './memory'
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
  const suspectsLast = [...abandoned.filter(isNone), ...abandoned.filter(({ record }) => isSuspect(record))]
  return suspectsLast.slice(0, params.limit).map((entry) => copyOf(recoverOne(memory, entry, { params, owners })))
}

function isNone({ record }: RunEntry): boolean {
  return !isSuspect(record)
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
  const isBesideSuspect = owners.has(lease?.ownerId ?? '')
  const recovery = recoveryOf({ ...record, isBesideSuspect }, params)
  const change = { ...changeOf(memory, entry, recovery, params), crashCount: recovery.crashCount }
  entry.lease = null
  return memory.table.change(entry, { ...change, leaseEpoch: record.leaseEpoch + 1 }, recovery.events)
}

function changeOf(memory: Memory, entry: RunEntry, recovery: Recovery, { crashLimit }: RecoverParams): RunChange {
  const { status, delayMs } = recovery
  if (status === 'cancelled') return asCancelled(memory, entry)
  const left = leaveRunning(memory, entry, status)
  if (status === 'failed') return { ...left, error: crashLimit.error, errorDetail: frozenCopy(crashLimit.detail) }
  return { ...left, availableAt: delayMs === 0 ? entry.record.createdAt : memory.clock.in(delayMs) }
}
