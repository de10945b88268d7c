import { isEnded, StorageError, wokenAt, type RunRecord } from '@coji/durably-core/storage'
import { keyName, type Change, type State, type StepRow } from './state.ts'

/** Later years have five digits, and the order of texts would no longer be the order of times. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/**
 * A write in the making: reads see what it has put so far, the state does not. It becomes one line, or, when something
 * is thrown on the way, nothing. All of it happens at one instant.
 */
export class Draft {
  readonly state: State
  readonly #nowMs = Date.now()
  readonly #runs = new Map<string, RunRecord>()
  readonly #removedRuns: string[] = []
  readonly #rows = new Map<string, Map<string, StepRow>>()
  readonly #putSteps = new Set<StepRow>()
  readonly #removedSteps: StepRow[] = []

  constructor(state: State) {
    this.state = state
  }

  get now(): string {
    return this.in(0)
  }

  in(ms: number): string {
    return new Date(Math.max(0, Math.min(this.#nowMs + Math.floor(ms), LAST_MS))).toISOString()
  }

  run(id: string, tenant?: string): RunRecord | undefined {
    const run = this.#runs.get(id) ?? this.state.run(id)
    return tenant === undefined || run?.tenant === tenant ? run : undefined
  }

  findByKey(wanted: Pick<RunRecord, 'tenant' | 'jobName' | 'idempotencyKey'>): RunRecord | undefined {
    if (wanted.idempotencyKey === null) return undefined
    const name = keyName(wanted)
    return this.state.findByKey(wanted) ?? [...this.#runs.values()].find((run) => keyName(run) === name)
  }

  insert(run: RunRecord): RunRecord {
    this.#runs.set(run.id, run)
    return run
  }

  /** Every change of a run. When one ends, those that wait for it are told in the same write. */
  change(before: RunRecord, change: Partial<RunRecord>): RunRecord {
    const after = { ...before, ...change, version: before.version + 1, updatedAt: this.now }
    this.#runs.set(after.id, after)
    if (!isEnded(before.status) && isEnded(after.status)) {
      if (after.parentRunId !== null) this.#wake(after.parentRunId)
      for (const id of after.alsoAwaitedBy) this.#wake(id)
    }
    return after
  }

  #wake(runId: string): void {
    const run = this.run(runId)
    if (run === undefined || isEnded(run.status)) return
    const woken = { ...run, wakes: run.wakes + 1 }
    const isSuspended = run.status === 'pending' && run.waitingFor?.kind === 'steps'
    this.change(run, { wakes: woken.wakes, ...(isSuspended && { availableAt: wokenAt(woken, this.now) }) })
  }

  /** The steps of a run by id, in the order of writing. */
  steps(runId: string): Map<string, StepRow> {
    const rows = this.#rows.get(runId) ?? new Map(this.state.steps(runId).map((row) => [row.id, row]))
    this.#rows.set(runId, rows)
    return rows
  }

  putStep(row: StepRow): void {
    const rows = this.steps(row.runId)
    const isTaken = ({ id, name, status }: StepRow) => name === row.name && status !== 'failed' && id !== row.id
    if (row.status !== 'failed' && [...rows.values()].some(isTaken)) {
      throw new StorageError('STORAGE_REJECTED', `Step "${row.name}" of this run is already there under another id.`)
    }
    rows.set(row.id, row)
    this.#putSteps.add(row)
  }

  removeStep(row: StepRow): void {
    this.#removedSteps.push(row)
  }

  remove({ id }: RunRecord): void {
    this.#removedRuns.push(id)
  }

  /** `null` when nothing was written. */
  toChange(): Change | null {
    const change = {
      runs: [...this.#runs.values()],
      removedRuns: this.#removedRuns,
      steps: [...this.#putSteps],
      removedSteps: this.#removedSteps.map(({ runId, id }) => ({ runId, id })),
    }
    return Object.values(change).every(({ length }) => length === 0) ? null : change
  }
}
