import type { RunRecord } from '../port'
import type { Execution } from './execution'

/** The runs that a worker executes at the moment. */
export class RunsInHand {
  readonly #executions = new Set<Execution>()

  get size(): number {
    return this.#executions.size
  }

  add(execution: Execution): void {
    this.#executions.add(execution)
  }

  remove(execution: Execution): void {
    this.#executions.delete(execution)
  }

  all(): readonly Execution[] {
    return [...this.#executions]
  }

  has(runId: string): boolean {
    for (const execution of this.#executions) if (execution.runId === runId) return true
    return false
  }

  hasSuspect(): boolean {
    for (const execution of this.#executions) if (execution.isSuspect()) return true
    return false
  }

  /** `asked` is the run as the command left it: a retry may have begun another execution since. */
  cancel(asked: Pick<RunRecord, 'id' | 'leaseEpoch'>): void {
    for (const execution of this.#executions) {
      if (execution.runId === asked.id && execution.leaseEpoch === asked.leaseEpoch) execution.interrupt('cancelled')
    }
  }

  interruptAll(graceMs: number): void {
    for (const execution of this.#executions) execution.interrupt('shutdown', graceMs)
  }

  /** When those that are in hand now have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.all().map((execution) => execution.done))
  }
}
