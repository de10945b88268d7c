import type { Log, Run, StatusCounts, Step, StoredEvent, WorkerState } from '@coji/durably'

/** A step as its events told of it, until the database has been read that far. */
export interface LiveStep {
  readonly name: string
  readonly startedAt: string
  /** `null` while its body runs. */
  readonly end: { readonly kind: 'completed' | 'failed'; readonly at: string; readonly durationMs: number } | null
  /** The event that ended it, or its execution, has this number in the database. */
  readonly untilSeq: number | null
}

/** What the database has of the selected run, beside the run itself. */
export interface RunHistory {
  readonly runId: string
  readonly steps: readonly Step[]
  readonly events: readonly StoredEvent[]
  readonly logs: readonly Log[]
}

/** Everything of a run that is shown. */
export interface RunDetail extends RunHistory {
  readonly run: Run
}

export interface Notice {
  readonly id: string
  readonly title: string
  readonly text: string
}

/** Who executes the jobs: `unknown` until the tabs have settled it. */
export type TabRole = 'unknown' | 'leader' | 'follower'

export interface DemoState {
  /** Each run that is shown, once: whoever shows it shows the same. */
  readonly runs: ReadonlyMap<string, Run>
  /** Those of the list, newest first. */
  readonly listed: readonly string[]
  readonly isLoaded: boolean
  readonly counts: StatusCounts | null
  readonly limit: number
  readonly selectedId: string | null
  /** Of the selected run; `null` while it is read, and when there is none. */
  readonly history: RunHistory | null
  readonly isMissing: boolean
  readonly liveSteps: ReadonlyMap<string, readonly LiveStep[]>
  readonly role: TabRole
  readonly worker: WorkerState
  readonly notices: readonly Notice[]
  /** Read out by screen readers. */
  readonly announcement: string
}

export const FIRST_LIMIT = 50

export const INITIAL_STATE: DemoState = {
  runs: new Map(),
  listed: [],
  isLoaded: false,
  counts: null,
  limit: FIRST_LIMIT,
  selectedId: null,
  history: null,
  isMissing: false,
  liveSteps: new Map(),
  role: 'unknown',
  worker: 'stopped',
  notices: [],
  announcement: '',
}
