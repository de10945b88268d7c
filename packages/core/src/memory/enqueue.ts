import { type EnqueueAnswer, firstDue, keyConflict, newRecord, type NewRun } from '../port'
import { copyOf, type Memory } from './memory'
import { labelsOf, type RunEntry } from './run-entry'

export function enqueue(memory: Memory, runs: readonly NewRun[]): EnqueueAnswer[] {
  checkConflicts(memory, runs)
  return runs.map((run) => {
    const { entry, created } = enqueueOne(memory, run)
    return { run: copyOf(entry.record), created }
  })
}

/** Throws, having written nothing, if a run must be refused because of one that is here or before it in the list. */
export function checkConflicts(memory: Memory, runs: readonly NewRun[]): void {
  if (!runs.some(({ onConflict }) => onConflict === 'reject')) return
  const earlier = new Map<string, NewRun>()
  for (const run of runs) {
    if (run.idempotencyKey === null || memory.table.find(run.id) !== undefined) continue
    const name = JSON.stringify([run.tenant, run.jobName, run.idempotencyKey])
    const holder = holderOfKey(memory, run)?.record ?? earlier.get(name) ?? run
    if (run.onConflict === 'reject' && holder.id !== run.id && holder.payload !== run.payload) {
      throw keyConflict(run, holder)
    }
    if (holder === run) earlier.set(name, run)
  }
}

export function enqueueOne(memory: Memory, run: NewRun): { readonly entry: RunEntry; readonly created: boolean } {
  const { table, clock } = memory
  const sentBefore = table.find(run.id)
  if (sentBefore !== undefined) return { entry: sentBefore, created: true }
  const holder = holderOfKey(memory, run)
  if (holder !== undefined) return { entry: holder, created: false }
  const times = { createdAt: clock.now(), availableAt: firstDue(run, clock) }
  const record = newRecord(run, { ...times, labels: labelsOf(run) })
  return { entry: table.insert(record, run.events), created: true }
}

function holderOfKey({ table, rules }: Memory, run: NewRun): RunEntry | undefined {
  const holder = table.findByIdempotencyKey(run) ?? table.scheduled.find(run)
  return rules.allows('enqueue', 'idempotencyKey', () => holder === undefined) ? undefined : holder
}
