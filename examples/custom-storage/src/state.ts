import { isEnded, type RunRecord, type StepRecord } from '@coji/durably-core/storage'

/** A step as it is kept; whether it is due depends on when one asks. */
export type StepRow = Omit<StepRecord, 'isDue'>

/** What one write did, as whole records: one line of the file. Applying it twice is applying it once. */
export interface Change {
  readonly runs: readonly RunRecord[]
  readonly removedRuns: readonly string[]
  readonly steps: readonly StepRow[]
  readonly removedSteps: readonly Pick<StepRow, 'runId' | 'id'>[]
}

type Keyed = Pick<RunRecord, 'tenant' | 'jobName' | 'idempotencyKey'>

/** All runs and steps in memory: what comes of applying every line of the file in order, and nothing else. */
export class State {
  readonly #runs = new Map<string, RunRecord>()
  readonly #steps = new Map<string, Map<string, StepRow>>()
  readonly #live = new Set<string>()
  readonly #idByKey = new Map<string, string>()

  apply({ runs, removedRuns, steps, removedSteps }: Change): void {
    for (const run of runs) this.#put(run)
    for (const step of steps) this.#putStep(step)
    for (const { runId, id } of removedSteps) this.#steps.get(runId)?.delete(id)
    for (const id of removedRuns) this.#remove(id)
  }

  run(id: string): RunRecord | undefined {
    return this.#runs.get(id)
  }

  runs(): RunRecord[] {
    return [...this.#runs.values()]
  }

  /** Runs that have not ended, so that the work does not grow with the history. */
  live(): RunRecord[] {
    return [...this.#live].flatMap((id) => this.#runs.get(id) ?? [])
  }

  /** In the order of writing. */
  steps(runId: string): StepRow[] {
    return [...(this.#steps.get(runId)?.values() ?? [])]
  }

  findByKey(run: Keyed): RunRecord | undefined {
    return this.#runs.get(this.#idByKey.get(keyName(run)) ?? '')
  }

  #put(run: RunRecord): void {
    this.#runs.set(run.id, run)
    if (isEnded(run.status)) this.#live.delete(run.id)
    else this.#live.add(run.id)
    if (run.idempotencyKey !== null) this.#idByKey.set(keyName(run), run.id)
  }

  #putStep(step: StepRow): void {
    const rows = this.#steps.get(step.runId) ?? new Map<string, StepRow>()
    this.#steps.set(step.runId, rows.set(step.id, step))
  }

  #remove(id: string): void {
    const run = this.#runs.get(id)
    if (run?.idempotencyKey != null) this.#idByKey.delete(keyName(run))
    this.#runs.delete(id)
    this.#live.delete(id)
    this.#steps.delete(id)
  }
}

export function keyName({ tenant, jobName, idempotencyKey }: Keyed): string {
  return JSON.stringify([tenant, jobName, idempotencyKey])
}
