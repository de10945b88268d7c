import type { DebouncedRun, EnqueueAnswer, Instant, RunRecord } from '../port'
import { enqueueOne } from './enqueue'
import { copyOf, type Memory } from './memory'
import type { RunEntry } from './run-entry'

type Keyed = Pick<DebouncedRun, 'key' | 'run'>

/** The last run of each key that was triggered with one. */
export class DebounceKeys {
  readonly #runs = new RunIds()

  get({ key, run: { tenant, jobName } }: Keyed): string | undefined {
    return this.#runs.get(JSON.stringify([tenant, jobName, key]))
  }

  /** `isOpen`: whether more may come to a run. Of the others nothing has to be known. */
  set({ key, run: { id, tenant, jobName } }: Keyed, isOpen: (id: string) => boolean): void {
    this.#runs.set(JSON.stringify([tenant, jobName, key]), id, isOpen)
  }
}

/** Ids of runs by a name, of which those are forgotten now and then that nobody needs. */
export class RunIds {
  readonly #ids = new Map<string, string>()
  #sweepAt = 1000

  get(name: string): string | undefined {
    return this.#ids.get(name)
  }

  set(name: string, id: string, isNeeded: (id: string) => boolean): void {
    this.#ids.set(name, id)
    if (this.#ids.size < this.#sweepAt) return
    for (const [each, runId] of this.#ids) if (!isNeeded(runId)) this.#ids.delete(each)
    this.#sweepAt = Math.max(1000, 2 * this.#ids.size)
  }
}

export function enqueueDebounced(memory: Memory, debounced: DebouncedRun): EnqueueAnswer {
  const { table, debounceKeys } = memory
  const { run } = debounced
  const isOpen = (id: string) => openEntry(memory, id) !== undefined
  const last = openEntry(memory, debounceKeys.get(debounced))
  const sentBefore = table.find(run.id)
  // It has begun meanwhile, and the run that others wait for since keeps its place.
  if (sentBefore !== undefined && sentBefore !== last) return { run: copyOf(sentBefore.record), created: true }
  if (last === undefined) {
    const { entry } = enqueueOne(memory, run)
    debounceKeys.set(debounced, isOpen)
    return { run: copyOf(entry.record), created: true }
  }
  const availableAt = putOff(memory, last.record, debounced)
  return { run: copyOf(table.change(last, { payload: run.payload, availableAt }, [])), created: sentBefore === last }
}

/** The run, if more may come to it. */
export function openEntry({ table }: Memory, id: string | undefined): RunEntry | undefined {
  const entry = id === undefined ? undefined : table.find(id)
  return entry !== undefined && hasNeverBegun(entry.record) ? entry : undefined
}

function hasNeverBegun({ status, attempt, startedAt, waitingFor }: RunRecord): boolean {
  return status === 'pending' && attempt === 1 && startedAt === null && waitingFor === null
}

function putOff({ clock }: Memory, { createdAt }: RunRecord, { waitMs, maxWaitMs }: DebouncedRun): Instant {
  const wanted = clock.in(waitMs)
  if (maxWaitMs === null) return wanted
  const latest = new Date(Date.parse(createdAt) + maxWaitMs).toISOString()
  if (latest < wanted) return latest
  return wanted
}
