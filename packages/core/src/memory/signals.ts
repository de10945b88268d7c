import { auditViewOf, type NewSignal, type SignalAnswer, type SignalRecord } from '../port'
import { copyOf, type Memory } from './memory'

export function sendSignal(memory: Memory, signal: NewSignal): SignalAnswer {
  const { table, rules, clock } = memory
  const entry = table.find(signal.runId, signal.tenant)
  if (entry === undefined) return { kept: false, reason: 'not-found' }
  const { runId, name, payload, dedupeKey } = signal
  if (dedupeKey !== null && entry.dedupeKeys?.has(dedupeKey)) return { kept: false, reason: 'duplicate' }
  if (!rules.allowsFrom('signal', entry.record.status)) {
    return { kept: false, reason: 'wrong-state', run: copyOf(entry.record) }
  }
  if (dedupeKey !== null) {
    entry.dedupeKeys ??= new Set()
    entry.dedupeKeys.add(dedupeKey)
  }
  const before = signal.audit === undefined ? null : auditViewOf(entry.record)
  const { wakes: position } = table.wakeBySignal(entry, signal.events)
  entry.signals = [...entry.signals, Object.freeze({ runId, position, name, payload, createdAt: clock.now() })]
  if (signal.audit !== undefined) {
    const { tenant } = entry.record
    memory.audit.add(signal.audit, { targetKind: 'run', target: runId, tenant, before, after: { signal: name } })
  }
  return { kept: true, position }
}

export function getUnread({ table }: Memory, runId: string): readonly SignalRecord[] {
  return [...(table.find(runId)?.signals ?? [])]
}
