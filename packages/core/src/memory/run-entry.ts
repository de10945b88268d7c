import type { EventRecord, LogRecord, NewRun, RunRecord, SignalRecord } from '../port'
import type { HeapItem } from './heap'
import { frozenCopy } from './memory'
import { NOWHERE } from './gap-list'
import { StoredSteps } from './stored-steps'

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
export type WaitsIn = 'later' | 'ready' | 'keyed'

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
  waitsIn: WaitsIn | null = null
  position = NOWHERE
  /** In the order of creation, of ending, and among those that may be dropped. */
  createdPosition = NOWHERE
  endedPosition = NOWHERE
  droppablePosition = NOWHERE
  // Made when there is something to put into them: most runs wait without, and none of them is small.
  #steps: StoredSteps | null = null
  #events: EventRecord[] | null = null
  #logs: LogRecord[] | null = null

  constructor(record: RunRecord) {
    this.record = record
  }

  get steps(): StoredSteps {
    this.#steps ??= new StoredSteps()
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

  /** The first ones. */
  dropLogs(count: number): void {
    this.#logs = this.logs.length === count ? null : this.logs.slice(count)
  }

  addLog(log: LogRecord): void {
    this.#logs ??= []
    this.#logs.push(log)
  }

  get head(): RunEntry {
    return this
  }
}

const NO_LABELS = Object.freeze({})

/** Shared by all that have none. */
export function labelsOf({ labels }: NewRun): RunRecord['labels'] {
  return Object.keys(labels).length === 0 ? NO_LABELS : frozenCopy(labels)
}
