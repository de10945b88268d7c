import type { MemoryStorage } from '@coji/durably-core/memory'
import type { DebouncedRun, RunRecord } from '@coji/durably-core/storage'
import { watchLists } from './batch-witness'
import type { Witness } from './witness'

/** Looks at the runs before and after each trigger: in memory a write is over when its call returns. */
export function watchDebounce(storage: MemoryStorage, witness: Witness, now: () => number): MemoryStorage['debounce'] {
  const { debounce } = storage
  return {
    join: watchLists(storage, witness, now),
    async enqueue(debounced, transaction) {
      const { jobName } = debounced.run
      const look = () => storage.getRuns({ jobNames: [jobName] })
      const nowMs = now()
      const looking = look()
      const answer = await debounce.enqueue(debounced, transaction)
      const [before, after] = [await looking, await look()]
      for (const what of mistakesIn(debounced, { before, after, nowMs })) witness.wrong.push(what)
      const isLate = before.some((run) => run.id === debounced.run.id && !isOpen(run))
      if (!isLate) witness.lastArrived.set(debounced.key, debounced.run.payload ?? '')
      return answer
    },
  }
}

interface Change {
  readonly before: readonly RunRecord[]
  readonly after: readonly RunRecord[]
  readonly nowMs: number
}

function* mistakesIn({ run, key, waitMs, maxWaitMs }: DebouncedRun, { before, after, nowMs }: Change) {
  const known = new Map(before.map((each) => [each.id, each]))
  for (const { id, version, payload } of after) {
    const was = known.get(id)
    if (was === undefined && id !== run.id) yield `a trigger created run ${id} in place of ${run.id}`
    if (was !== undefined && !isOpen(was) && was.version !== version)
      yield `a trigger gave ${payload} to run ${id} late`
  }
  const sentBefore = known.get(run.id)
  if (sentBefore !== undefined && !isOpen(sentBefore)) return
  const [open, ...others] = after.filter((each) => isOpen(each) && keyOf(each) === key)
  if (open === undefined || others.length > 0) {
    yield `key ${key} has ${open === undefined ? 0 : 1 + others.length} runs after ${run.payload}`
    return
  }
  if (open.payload !== run.payload) yield `the run of ${key} has ${open.payload} after ${run.payload}`
  const latest = maxWaitMs === null ? Number.POSITIVE_INFINITY : Date.parse(open.createdAt) + maxWaitMs
  const dueAt = Date.parse(open.availableAt ?? '')
  if (dueAt !== Math.min(nowMs + waitMs, latest)) yield `the run of ${key} is due at ${open.availableAt}`
}

/** More may come to it. */
export function isOpen({ status, startedAt }: RunRecord): boolean {
  return status === 'pending' && startedAt === null
}

function keyOf({ payload }: RunRecord): string {
  return (JSON.parse(payload ?? '{}') as { readonly key: string }).key
}
