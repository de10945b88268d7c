import type { EventTemplate, Lease, NewLog, NewRun, Outcome, RunCommit, StatusCounts, StepWrite } from '../../port'
import { createEnvironment } from '../../base'

/** Strictly growing, so that a later run has a later id. */
export const newId = createEnvironment().createId

export const LEASE_MS = 60_000
/** Longer than any test takes. */
export const FAR_MS = 3_600_000
export const DETAIL = {
  name: 'TypeError',
  code: 'E_TEST',
  stack: 'TypeError: broken\n    at job',
  stepName: 'pay',
} as const

/** What `counts` answers where there is nothing. */
export const NO_COUNTS: StatusCounts = {
  pending: 0,
  assigned: 0,
  running: 0,
  completed: 0,
  failed: 0,
  timed_out: 0,
  cancelled: 0,
  orphaned: 0,
  waitsForRetry: 0,
  parked: 0,
}

/** A run to enqueue, for tests of a storage. */
export function newRun(over: Partial<NewRun> = {}): NewRun {
  return {
    id: newId(),
    tenant: '',
    jobName: 'job',
    jobVersion: null,
    payload: '{"n":1}',
    labels: {},
    idempotencyKey: null,
    onConflict: 'return',
    concurrencyKey: null,
    concurrencyLimit: 1,
    holdKeyWhileWaiting: false,
    priority: 0,
    start: { afterMs: 0 },
    timeoutMs: null,
    parentRunId: null,
    scheduleId: null,
    scheduledFor: null,
    events: [],
    ...over,
  }
}

/** A step to commit, completed unless said otherwise. */
export function stepWrite(over: Partial<StepWrite> = {}): StepWrite {
  const id = newId()
  return {
    id,
    name: `step-${id}`,
    index: 0,
    kind: 'run',
    status: 'completed',
    attempt: 1,
    output: '"done"',
    error: null,
    errorDetail: null,
    checkpoint: null,
    durationMs: 0,
    due: null,
    waitName: null,
    child: null,
    ...over,
  }
}

export function waitingStep(over: Partial<StepWrite> = {}): StepWrite {
  return stepWrite({ kind: 'sleep', status: 'waiting', output: null, ...over })
}

export function newLog(over: Partial<NewLog> = {}): NewLog {
  return {
    id: newId(),
    stepName: null,
    level: 'info',
    message: 'hello',
    data: null,
    timestamp: '2026-01-31T09:00:00.000Z',
    ...over,
  }
}

export function template(type: string, payload = '{}'): EventTemplate {
  return { type, payload }
}

/** A commit with nothing in it. */
export function runCommit(
  { lease, commitNo }: { readonly lease: Lease; readonly commitNo: number },
  over: Partial<RunCommit> = {},
): RunCommit {
  return {
    lease,
    commitNo,
    leaseMs: LEASE_MS,
    hasProgressed: false,
    currentStepIndex: null,
    progress: null,
    steps: [],
    children: [],
    logs: [],
    events: [],
    consumedSignals: [],
    outcome: null,
    ...over,
  }
}

export type OutcomeKind = Outcome['kind']

export const OUTCOME_KINDS = [
  'complete',
  'fail',
  'timeOut',
  'cancelled',
  'retryLater',
  'suspend',
  'release',
  'park',
] as const satisfies readonly OutcomeKind[]

const NO_EVENTS = { events: [], eventsIfCancelled: [] } as const

const OUTCOMES: { readonly [K in OutcomeKind]: Extract<Outcome, { kind: K }> } = {
  complete: { kind: 'complete', output: '{"ok":true}', ...NO_EVENTS },
  fail: { kind: 'fail', error: 'broken', detail: DETAIL, ...NO_EVENTS },
  timeOut: { kind: 'timeOut', error: 'too slow', detail: DETAIL, ...NO_EVENTS },
  cancelled: { kind: 'cancelled', ...NO_EVENTS },
  retryLater: { kind: 'retryLater', delayMs: FAR_MS, error: 'not yet', detail: DETAIL, ...NO_EVENTS },
  suspend: { kind: 'suspend', steps: ['nap'], wakesSeen: 0, wakesWanted: 1, restMs: 0, ...NO_EVENTS },
  release: { kind: 'release', ...NO_EVENTS },
  park: { kind: 'park', reason: 'code changed', ...NO_EVENTS },
}

/** An outcome of the kind, with what matters to the case put over it. */
export function outcomeOf<K extends OutcomeKind>(
  kind: K,
  over: Partial<Extract<Outcome, { kind: K }>> = {},
): Extract<Outcome, { kind: K }> {
  return { ...OUTCOMES[kind], ...over }
}
