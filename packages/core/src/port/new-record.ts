import type { Instant, RunRecord } from './records'
import type { WriteTime } from './effects'
import type { NewRun } from './writes'

/** When a new run may be claimed first: not before it was created. */
export function firstDue({ start }: NewRun, time: WriteTime): Instant {
  return 'at' in start ? latest(start.at, time.in(0)) : time.in(start.afterMs)
}

function latest(a: Instant, b: Instant): Instant {
  return a > b ? a : b
}

/** A run as it is when it has been created. */
export function newRecord(
  run: NewRun,
  { createdAt, availableAt, labels }: Pick<RunRecord, 'createdAt' | 'availableAt' | 'labels'>,
): RunRecord {
  // One spread at the start and named properties keep the object fast; several spreads make it a slow dictionary.
  return {
    ...UNTOUCHED,
    id: run.id,
    tenant: run.tenant,
    jobName: run.jobName,
    jobVersion: run.jobVersion,
    payload: run.payload,
    labels,
    idempotencyKey: run.idempotencyKey,
    concurrencyKey: run.concurrencyKey,
    concurrencyLimit: run.concurrencyLimit,
    holdKeyWhileWaiting: run.holdKeyWhileWaiting,
    priority: run.priority,
    availableAt,
    timeoutMs: run.timeoutMs,
    parentRunId: run.parentRunId,
    scheduleId: run.scheduleId,
    scheduledFor: run.scheduledFor,
    traceParent: run.traceParent ?? null,
    lastEventSequence: run.events.length,
    createdAt,
    updatedAt: createdAt,
  }
}

/** A run before anything happened to it, with every property in place. */
const UNTOUCHED: RunRecord = {
  id: '',
  tenant: '',
  jobName: '',
  jobVersion: null,
  payload: null,
  status: 'pending',
  labels: {},
  idempotencyKey: null,
  concurrencyKey: null,
  concurrencyLimit: 1,
  concurrencySlot: null,
  holdKeyWhileWaiting: false,
  priority: 0,
  availableAt: null,
  waitingFor: null,
  currentStepIndex: 0,
  progress: null,
  output: null,
  error: null,
  errorDetail: null,
  version: 1,
  attempt: 1,
  attemptBase: 0,
  crashCount: 0,
  assignments: 0,
  assignedWorkerId: null,
  assignedAt: null,
  ownerId: null,
  claimToken: null,
  leaseEpoch: 0,
  leaseUntil: null,
  leaderEpoch: null,
  commitNo: 0,
  wakes: 0,
  wakesWanted: 0,
  restUntil: null,
  lastEventSequence: 0,
  cancelRequestedAt: null,
  timeoutMs: null,
  deadlineAt: null,
  parentRunId: null,
  forkedFrom: null,
  alsoAwaitedBy: /* @__PURE__ */ Object.freeze([]),
  scheduleId: null,
  scheduledFor: null,
  logRef: null,
  traceParent: null,
  heartbeatAt: null,
  createdAt: '',
  updatedAt: '',
  startedAt: null,
  finishedAt: null,
}
