import { auditViewOf, type NewFork, type RunRecord } from '../port'
import { enqueueOne } from './enqueue'
import { copyOf, type Memory } from './memory'

export function fork(memory: Memory, { run, originId, steps, audit }: NewFork): RunRecord | null {
  const { table } = memory
  const origin = table.find(originId)
  if (origin === undefined) return null
  const isSentBefore = table.find(run.id) !== undefined
  const { entry } = enqueueOne(memory, run)
  if (isSentBefore) return copyOf(entry.record)
  for (const { id, copyId } of steps) entry.steps.copy(origin.steps.get(id), { id: copyId, runId: run.id })
  if (audit !== undefined) {
    const { tenant } = origin.record
    const before = auditViewOf(origin.record)
    memory.audit.add(audit, { tenant, targetKind: 'run', target: originId, before, after: { run: run.id } })
  }
  table.change(entry, { forkedFrom: originId, currentStepIndex: steps.length }, [])
  return copyOf(entry.record)
}
