import type { NewRun } from '@coji/durably-core/storage'
import type { RunDraft } from '@coji/durably-core/extend'
import type { Term, Timing } from './timing'

/** What becomes of instants that came while nobody looked. */
export type Missed = 'skip' | 'latest' | { readonly all: true; readonly max: number }

/** What of a run is the same at each instant, beside its job, payload and tenant. */
export type RunTemplate = Pick<
  NewRun,
  'jobVersion' | 'labels' | 'concurrencyKey' | 'concurrencyLimit' | 'holdKeyWhileWaiting' | 'priority' | 'timeoutMs'
>

/** A schedule as its storage keeps it, in one JSON text: when it fires, and how its runs are made. */
export interface Definition extends Term {
  readonly timing: Timing
  readonly missed: Missed
  readonly jitterMs: number
  readonly run: RunTemplate
}

/** The same definition is the same text. */
export function encodeDefinition({ timing, start, end, missed, jitterMs, run }: Definition): string {
  const labels = Object.fromEntries(Object.entries(run.labels).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify({ timing, start, end, missed, jitterMs, run: { ...run, labels } })
}

export function decodeDefinition(text: string): Definition {
  return JSON.parse(text) as Definition
}

/** Whether both fire at the same instants. */
export function firesAlike(one: Definition, other: Definition): boolean {
  const timesOf = ({ timing, start, end }: Definition) => JSON.stringify({ timing, start, end })
  return timesOf(one) === timesOf(other)
}

export function templateOf(draft: RunDraft): RunTemplate {
  const { jobVersion, labels, concurrencyKey, concurrencyLimit, holdKeyWhileWaiting, priority, timeoutMs } = draft
  return { jobVersion, labels, concurrencyKey, concurrencyLimit, holdKeyWhileWaiting, priority, timeoutMs }
}
