import type { Log, Run, StatusCounts, Step, StoredEvent, WorkerState } from '@coji/durably'

/** A step whose body runs now, as an event of it told: the database has no row of it yet. */
export interface OpenStep {
  readonly name: string
  readonly startedAt: string
}

/** Everything of the run that is shown. */
export interface RunDetail {
  readonly run: Run
  readonly steps: readonly Step[]
  readonly events: readonly StoredEvent[]
  readonly logs: readonly Log[]
}

export interface Notice {
  readonly id: string
  readonly title: string
  readonly text: string
}

/** A run that went on where another execution of it had stopped. */
export interface Resumed {
  readonly runId: string
  readonly jobName: string
  readonly skipped: number
}

/** Who executes the jobs: `unknown` until the tabs have settled it. */
export type TabRole = 'unknown' | 'leader' | 'follower'

export interface DemoState {
  readonly runs: readonly Run[]
  readonly isLoaded: boolean
  readonly counts: StatusCounts | null
  readonly limit: number
  readonly selectedId: string | null
  /** Of the selected run; `null` while it is read, and when there is none. */
  readonly detail: RunDetail | null
  readonly isMissing: boolean
  readonly openSteps: ReadonlyMap<string, readonly OpenStep[]>
  readonly role: TabRole
  readonly worker: WorkerState
  readonly notices: readonly Notice[]
  readonly resumed: Resumed | null
  /** Read out by screen readers. */
  readonly announcement: string
}

export const FIRST_LIMIT = 50

export const INITIAL_STATE: DemoState = {
  runs: [],
  isLoaded: false,
  counts: null,
  limit: FIRST_LIMIT,
  selectedId: null,
  detail: null,
  isMissing: false,
  openSteps: new Map(),
  role: 'unknown',
  worker: 'stopped',
  notices: [],
  resumed: null,
  announcement: '',
}
