import { afterRecovery, isSuspect, type RecoverParams, recoveryOf, type RunRecord } from '../port'
import { copyOf, type Memory, ownChange } from './memory'
import type { RunEntry } from './run-entry'

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
  entry.lease = null
  const change = ownChange(afterRecovery(record, recovery, memory.clock))
  return memory.table.change(entry, change, recovery.events)
}
