import type { EventRecord, Instant, LogRecord, NewRun, RunRecord, SignalRecord } from '../port'
import type { Clock } from './clock'
import type { HeapItem } from './heap'
import { frozenCopy } from './memory'
import { NOWHERE } from './row'
import { StepRows } from './step-rows'

/**
 * The last lease given. It stays when the run leaves `running`, while the record no longer shows it: whether the lease
 * is the right one and whether the run is still running are two guards, and neither may stand in for the other.
 */
export interface LastLease {
  readonly token: string
  readonly ownerId: string
  readonly until: string
}

/** Where a run stands in the queue. */
export type Place = 'later' | 'ready' | 'keyed'

const NONE: readonly never[] = Object.freeze([])

/** All that is kept of one run. `record` is written to by `RunTable.touch` alone; answers are copies of it. */
export class RunEntry implements HeapItem {
  readonly record: RunRecord
  lease: LastLease | null = null
  signals: readonly SignalRecord[] = NONE
  /** The `wakes` of the last signal. */
  lastSignal = 0
  dedupeKeys: Set<string> | null = null
  /** Ended children that must not be dropped while this run goes on: it may still ask for them. */
  endedChildren: Set<RunEntry> | null = null
  /** The run on whose account this one, which has ended, is not dropped. */
  keeper: RunEntry | null = null
  place: Place | null = null
  position = NOWHERE
  /** In the order of creation, of ending, and among those that may be dropped. */
  createdPlace = NOWHERE
  endedPlace = NOWHERE
  droppablePlace = NOWHERE
  // Made when there is something to put into them: most runs wait without, and none of them is small.
  #steps: StepRows | null = null
  #events: EventRecord[] | null = null
  #logs: LogRecord[] | null = null

  constructor(record: RunRecord) {
    this.record = record
  }

  get steps(): StepRows {
    this.#steps ??= new StepRows()
    return this.#steps
  }

  get events(): readonly EventRecord[] {
    return this.#events ?? NONE
  }

  get logs(): readonly LogRecord[] {
    return this.#logs ?? NONE
  }

  addEvent(event: EventRecord): void {
    this.#events ??= []
    this.#events.push(event)
  }

  addLog(log: LogRecord): void {
    this.#logs ??= []
    this.#logs.push(log)
  }

  get head(): RunEntry {
    return this
  }
}

export function newRecord(run: NewRun, clock: Clock): RunRecord {
  const now = clock.now()
  // One spread at the start and named properties keep the object fast; several spreads make it a slow dictionary.
  return {
    ...UNTOUCHED,
    id: run.id,
    tenant: run.tenant,
    jobName: run.jobName,
    jobVersion: run.jobVersion,
    payload: run.payload,
    labels: labelsOf(run),
    idempotencyKey: run.idempotencyKey,
    concurrencyKey: run.concurrencyKey,
    concurrencyLimit: run.concurrencyLimit,
    holdKeyWhileWaiting: run.holdKeyWhileWaiting,
    priority: run.priority,
    availableAt: 'at' in run.start ? latest(run.start.at, now) : clock.in(run.start.afterMs),
    timeoutMs: run.timeoutMs,
    parentRunId: run.parentRunId,
    scheduleId: run.scheduleId,
    scheduledFor: run.scheduledFor,
    lastEventSequence: run.events.length,
    createdAt: now,
    updatedAt: now,
  }
}

const NO_LABELS = Object.freeze({})

function labelsOf({ labels }: NewRun): RunRecord['labels'] {
  return Object.keys(labels).length === 0 ? NO_LABELS : frozenCopy(labels)
}

function latest(a: Instant, b: Instant): Instant {
  return a > b ? a : b
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
  alsoAwaitedBy: Object.freeze([]),
  scheduleId: null,
  scheduledFor: null,
  heartbeatAt: null,
  createdAt: '',
  updatedAt: '',
  startedAt: null,
  finishedAt: null,
}
