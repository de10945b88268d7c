import { isEnded } from '../base'
import type { NewRun, RunRecord } from '../port'
import type { RunEntry } from './run-entry'

/** The runs of schedules: one of each instant. */
export class ScheduledRuns {
  readonly #byInstant = new Map<string, RunEntry>()
  readonly #open = new Map<string, Set<RunEntry>>()

  find(run: Pick<NewRun, 'scheduleId' | 'scheduledFor'>): RunEntry | undefined {
    return run.scheduleId === null || run.scheduledFor === null ? undefined : this.#byInstant.get(instantName(run))
  }

  add(entry: RunEntry): void {
    const { scheduleId, scheduledFor } = entry.record
    if (scheduleId === null) return
    if (scheduledFor !== null) this.#byInstant.set(instantName(entry.record), entry)
    this.#open.set(scheduleId, (this.#open.get(scheduleId) ?? new Set()).add(entry))
  }

  remove(entry: RunEntry): void {
    const { scheduleId } = entry.record
    if (scheduleId === null) return
    if (this.find(entry.record) === entry) this.#byInstant.delete(instantName(entry.record))
    this.#forget(scheduleId, entry)
  }

  /** Those that have not ended. One that has is looked at once. */
  openOf(scheduleId: string): readonly RunRecord[] {
    for (const entry of this.#open.get(scheduleId) ?? []) {
      if (isEnded(entry.record.status)) this.#forget(scheduleId, entry)
    }
    return [...(this.#open.get(scheduleId) ?? [])].map(({ record }) => record)
  }

  #forget(scheduleId: string, entry: RunEntry): void {
    const open = this.#open.get(scheduleId)
    open?.delete(entry)
    if (open?.size === 0) this.#open.delete(scheduleId)
  }
}

function instantName({ scheduleId, scheduledFor }: Pick<NewRun, 'scheduleId' | 'scheduledFor'>): string {
  return `${scheduleId} ${scheduledFor}`
}
