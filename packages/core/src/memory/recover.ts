import { crashBackoffMs } from '../retry'
import type { RecoverParams, RunRecord } from '../storage'
import { asCancelled, leaveRunning } from './leave'
import type { Departure } from './leave'
import { copyOf, frozenCopy } from './memory'
import type { Memory } from './memory'
import type { RunEntry } from './run-entry'

export function recover(memory: Memory, params: RecoverParams): RunRecord[] {
  const { table, rules } = memory
  const held = new Set(params.held)
  const abandoned: RunEntry[] = []
  for (const entry of rules.concernsRunningOnly('recover') ? table.running : table.all()) {
    if (abandoned.length >= params.limit) break
    if (isAbandoned(memory, entry, params) && rules.allows('recover', 'notHeld', () => !held.has(entry.record.id))) {
      abandoned.push(entry)
    }
  }
  return abandoned.map((entry) => copyOf(recoverOne(memory, entry, params)))
}

function isAbandoned({ rules, clock }: Memory, entry: RunEntry, { deadWorkerId }: RecoverParams): boolean {
  const { lease } = entry
  if (lease === null || !rules.allowsFrom('recover', entry.record.status)) return false
  return rules.allows('recover', 'expired', () =>
    deadWorkerId === null ? lease.until <= clock.now() : lease.ownerId === deadWorkerId,
  )
}

function recoverOne(memory: Memory, entry: RunEntry, params: RecoverParams): RunRecord {
  const { change, events } = recovery(memory, entry, params)
  const { leaseEpoch, crashCount } = entry.record
  entry.lease = null
  return memory.table.change(entry, { ...change, leaseEpoch: leaseEpoch + 1, crashCount: crashCount + 1 }, events)
}

function recovery(memory: Memory, entry: RunEntry, { maxCrashes, crashLimit, events }: RecoverParams): Departure {
  const { record } = entry
  if (record.cancelRequestedAt !== null) return { change: asCancelled(memory, entry), events: events.cancelled }
  if (record.crashCount + 1 >= maxCrashes) {
    const { error, detail } = crashLimit
    return {
      change: { ...leaveRunning(memory, entry, 'failed'), error, errorDetail: frozenCopy(detail) },
      events: events.failed,
    }
  }
  const delayMs = crashBackoffMs(record.crashCount + 1)
  const availableAt = delayMs === 0 ? record.createdAt : memory.clock.in(delayMs)
  return { change: { ...leaveRunning(memory, entry, 'pending'), availableAt }, events: events.pending }
}
