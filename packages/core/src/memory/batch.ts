import { utf8Length } from '../base'
import type { BatchedRun, EnqueueAnswer, Instant, NewRun, RunRecord } from '../port'
import { openEntry } from './debounce'
import { enqueueOne } from './enqueue'
import { copyOf, type Memory } from './memory'

export function joinBatch(memory: Memory, batched: BatchedRun): EnqueueAnswer {
  const { table, debounceKeys, joined } = memory
  const { run, max, maxBytes } = batched
  const sentBefore = table.find(joined.get(run.id) ?? run.id)
  if (sentBefore !== undefined) {
    return { run: copyOf(sentBefore.record), created: sentBefore.record.id === run.id }
  }
  const last = openEntry(memory, debounceKeys.get(batched))
  const together = last === undefined ? null : appended(last.record, run)
  if (last === undefined || together === null || utf8Length(together, maxBytes) > maxBytes || countIn(together) > max) {
    const { entry } = enqueueOne(memory, run)
    debounceKeys.set(batched, (id) => openEntry(memory, id) !== undefined)
    return { run: copyOf(entry.record), created: true }
  }
  joined.set(run.id, last.record.id, (id) => table.find(id) !== undefined)
  const availableAt = countIn(together) === max ? dueAtOnce(memory, last.record) : last.record.availableAt
  return { run: copyOf(table.change(last, { payload: together, availableAt }, [])), created: false }
}

function appended({ payload: before }: RunRecord, { payload: more }: NewRun): string {
  return `${String(before).slice(0, -1)},${String(more).slice(1)}`
}

function countIn(list: string): number {
  return (JSON.parse(list) as readonly unknown[]).length
}

function dueAtOnce({ clock }: Memory, { availableAt }: RunRecord): Instant | null {
  const now = clock.now()
  return availableAt !== null && availableAt < now ? availableAt : now
}
