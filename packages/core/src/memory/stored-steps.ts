import { StorageError } from '../base'
import type { Instant, StepKind, StepRecord, StepWrite } from '../port'
import type { Clock } from './clock'
import { frozenCopy } from './memory'

export type StoredStep = Omit<StepRecord, 'isDue'>

export interface StepOrigin {
  readonly runId: string
  readonly leaseEpoch: number
  readonly clock: Clock
}

/** The steps of one run: rows by id in the order of writing, and which row has a name that only one may have. */
export class StoredSteps {
  // Most runs wait without a step, and an empty Map is not small.
  #rows: Map<string, StoredStep> | null = null
  #liveIds: Map<string, string> | null = null

  /** Throws, having written nothing, if two rows of one name would be anything but `failed`. */
  check(writes: readonly StepWrite[]): void {
    const changed = new Map<string, string | null>()
    for (const { id, name, status } of writes) {
      const holder = changed.has(name) ? changed.get(name) : this.#liveIds?.get(name)
      if (status === 'failed') {
        if (holder === id) changed.set(name, null)
      } else if (holder !== undefined && holder !== null && holder !== id) {
        throw new StorageError('STORAGE_REJECTED', `Step "${name}" of this run is already there under another id.`)
      } else changed.set(name, id)
    }
  }

  write(step: StepWrite, output: string | null, origin: StepOrigin): void {
    this.#rows ??= new Map()
    this.#liveIds ??= new Map()
    const row = toRow(step, output, origin)
    const dueAt = this.#rows.get(step.id)?.dueAt ?? row.dueAt
    this.#rows.set(step.id, dueAt === row.dueAt ? row : { ...row, dueAt })
    if (step.status !== 'failed') this.#liveIds.set(step.name, step.id)
    else if (this.#liveIds.get(step.name) === step.id) this.#liveIds.delete(step.name)
  }

  get(id: string): StoredStep | undefined {
    return this.#rows?.get(id)
  }

  /** A completed step of another run. */
  copy(row: StoredStep | undefined, { id, runId }: Pick<StoredStep, 'id' | 'runId'>): void {
    if (row?.status !== 'completed') return
    this.#rows ??= new Map()
    this.#liveIds ??= new Map()
    this.#rows.set(id, { ...row, id, runId, leaseEpoch: 0 })
    this.#liveIds.set(row.name, id)
  }

  removeWaiting(): void {
    for (const row of this.#rows?.values() ?? []) {
      if (row.status !== 'waiting') continue
      this.#rows?.delete(row.id)
      this.#liveIds?.delete(row.name)
    }
  }

  waitsFor(kinds: readonly StepKind[]): boolean {
    return [...(this.#rows?.values() ?? [])].some(({ status, kind }) => status === 'waiting' && kinds.includes(kind))
  }

  /** When the waits of these names end by themselves. */
  waitingDueAt(names: readonly string[]): (Instant | null)[] {
    const waiting = [...(this.#rows?.values() ?? [])].filter(({ status }) => status === 'waiting')
    return waiting.filter(({ name }) => names.includes(name)).map(({ dueAt }) => dueAt)
  }

  read(now: Instant): StepRecord[] {
    const records = [...(this.#rows?.values() ?? [])].map((row) => ({
      ...row,
      isDue: row.dueAt !== null && row.dueAt <= now,
    }))
    return records.sort((a, b) => a.index - b.index)
  }
}

function toRow(step: StepWrite, output: string | null, { runId, leaseEpoch, clock }: StepOrigin): StoredStep {
  const { status, due } = step
  return {
    id: step.id,
    runId,
    name: step.name,
    index: step.index,
    kind: step.kind,
    status,
    attempt: step.attempt,
    output,
    error: step.error,
    errorDetail: step.errorDetail === null ? null : frozenCopy(step.errorDetail),
    checkpoint: step.checkpoint,
    waitName: step.waitName,
    dueAt: due === null ? null : 'at' in due ? due.at : clock.in(due.inMs),
    leaseEpoch,
    startedAt: clock.in(-step.durationMs),
    completedAt: status === 'completed' || status === 'failed' ? clock.now() : null,
  }
}
