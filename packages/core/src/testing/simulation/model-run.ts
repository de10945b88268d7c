import type { EventTemplate, Lease, NewRun, StepRecord, StepWrite } from '../../port'
import type { Json, RunStatus } from '../../base'

/** A signal that no step has used up. */
export interface UnreadSignal {
  readonly position: number
  readonly name: string
  readonly payload: Json | null
}

/** A row, with the instant at which its wait is over. */
export interface ModelStep extends StepWrite {
  readonly dueAt: number | null
}

/** The latest start of a stream that is stored. */
export interface Tale {
  /** Anything was said before this start. */
  readonly hasForerunner: boolean
  readonly lease: Lease
  isOpen: boolean
  restarts: number
  readonly chunks: unknown[]
}

/** What the model remembers of one run. Instants are milliseconds of the storage's clock. */
export interface ModelRun {
  readonly wanted: NewRun
  readonly createdAt: number
  status: RunStatus
  availableAt: number | null
  /** Why it is pending, when that is not for its turn. */
  waitingFor: 'retry' | 'steps' | 'unpark' | null
  /** Signals kept and children ended so far. */
  wakes: number
  wakesWanted: number
  /** The steps for which it was suspended last. */
  awaits: readonly string[]
  /** From the suspension on; nothing of it counts for a clock that was set back behind that. */
  restSince: number
  restUntil: number | null
  lastSignal: number
  readonly alsoAwaitedBy: Set<string>
  unread: readonly UnreadSignal[]
  readonly dedupeKeys: Set<string>
  slot: number | null
  attempt: number
  attemptBase: number
  crashes: number
  /** Its workers were lost too often, and who found that does not know what its failure calls: who claims it fails it. */
  isSpent: boolean
  epoch: number
  /** Stays when the run leaves `running`: a commit sent again is recognised by it. */
  token: string
  owner: string | null
  leaseUntil: number | null
  claimedAt: number
  commitNo: number
  cancelAsked: boolean
  output: string | null
  error: string | null
  deadlineAt: number | null
  finishedAt: number | null
  stepIndex: number
  progress: string | null
  /** Completed, waiting, or started without an outcome. */
  readonly liveSteps: Map<string, ModelStep>
  readonly failedSteps: ModelStep[]
  readonly events: string[]
  /** What its streams have said, by step, as far as it is stored. */
  readonly tales: Map<string, Tale>
  logs: number
  /** The version last seen; everything that changes the run must raise it. */
  version: number
}

/** What became of a run. */
export interface ModelEnd {
  readonly status: RunStatus
  readonly output: string | null
  readonly error: string | null
}

export function newModelRun(wanted: NewRun, now: number): ModelRun {
  return {
    wanted,
    createdAt: now,
    status: 'pending',
    availableAt: 'at' in wanted.start ? Date.parse(wanted.start.at) : now + Math.floor(wanted.start.afterMs),
    waitingFor: null,
    wakes: 0,
    wakesWanted: 0,
    awaits: [],
    restSince: 0,
    restUntil: null,
    lastSignal: 0,
    alsoAwaitedBy: new Set(),
    unread: [],
    dedupeKeys: new Set(),
    slot: null,
    attempt: 1,
    attemptBase: 0,
    crashes: 0,
    isSpent: false,
    epoch: 0,
    token: '',
    owner: null,
    leaseUntil: null,
    claimedAt: 0,
    commitNo: 0,
    cancelAsked: false,
    output: null,
    error: null,
    deadlineAt: null,
    finishedAt: null,
    stepIndex: 0,
    progress: null,
    liveSteps: new Map(),
    failedSteps: [],
    events: textsOf(wanted.events),
    tales: new Map(),
    logs: 0,
    version: 0,
  }
}

/** Events as text, alike for what was written and what is read back. */
export function textsOf(events: readonly EventTemplate[]): string[] {
  return events.map(({ type, payload }) => `${type} ${payload}`)
}

/** The last checkpoint under the name, and how often it failed. */
export function historyOf({ liveSteps, failedSteps }: ModelRun, stepName: string) {
  const failed = failedSteps.filter((step) => step.name === stepName)
  const last = liveSteps.get(stepName) ?? failed.at(-1)
  // A start that was called off before its body ran leaves a row of no attempt.
  const failures = failed.filter((step) => step.attempt > 0).length
  return { failures, checkpoint: last?.checkpoint ?? null, lastFailed: failed.at(-1) ?? null }
}

/** The rows of waits that are not over. */
export function waitingRows({ liveSteps }: ModelRun): readonly ModelStep[] {
  return [...liveSteps.values()].filter((step) => step.status === 'waiting')
}

/** A row as text, alike for what was written and what is read back. */
export function stepText(step: Omit<StepWrite | StepRecord, 'dueAt'>, dueAt: string | null): string {
  const { id, name, index, kind, status, attempt, output, error, checkpoint, waitName } = step
  return [id, name, index, kind, status, attempt, output, error, checkpoint, waitName, dueAt].join(' ')
}

export function instant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
