import { type EventTemplate, type Instant, type RunChange, type RunRecord, wokenAt } from '../port'
import { isEnded } from '../base'
import type { Strays } from './archiving'
import type { Clock } from './clock'
import { EndedRuns, isLive } from './ended-runs'
import type { Hints } from './hints'
import { ReadyQueue } from './ready-queue'
import { type Positions, GapList } from './gap-list'
import type { Rules } from './rules'
import { RunEntry } from './run-entry'
import { ScheduledRuns } from './scheduled-runs'
import { StatusCounter } from './status-counts'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

interface RunTableOptions {
  readonly rules: Rules
  readonly clock: Clock
  readonly hints: Hints
  readonly strays: Strays
  readonly keepEnded: number
}

/** The runs and all that follows from a change to one: queue, counts, slots, events, and the parent that waits. */
export class RunTable {
  readonly running = new Set<RunEntry>()
  /** Assigned and orphaned ones. */
  readonly placed = new Set<RunEntry>()
  readonly counts = new StatusCounter()
  readonly queue: ReadyQueue
  readonly scheduled = new ScheduledRuns()
  readonly ended = new EndedRuns((entry) => this.#parentsOf(entry))
  readonly #byId = new Map<string, RunEntry>()
  readonly #byIdempotencyKey = new Map<string, RunEntry>()
  readonly #created = new GapList<RunEntry>(CREATED)
  readonly #options: RunTableOptions

  constructor(options: RunTableOptions) {
    this.#options = options
    this.queue = new ReadyQueue(options.rules)
  }

  find(runId: string, tenant?: string): RunEntry | undefined {
    const entry = this.#byId.get(runId)
    return entry === undefined || (tenant !== undefined && entry.record.tenant !== tenant) ? undefined : entry
  }

  findByIdempotencyKey(run: KeyedRun): RunEntry | undefined {
    return run.idempotencyKey === null ? undefined : this.#byIdempotencyKey.get(idempotencyName(run))
  }

  all(): Iterable<RunEntry> {
    return this.#created.forwards()
  }

  /** By `createdAt`, then id, beginning where `within` begins to hold. */
  newestFirst(within: (record: RunRecord) => boolean): Iterable<RunEntry> {
    return this.#created.backwards(({ record }) => within(record))
  }

  insert(record: RunRecord, events: readonly EventTemplate[]): RunEntry {
    const entry = new RunEntry(record)
    this.#append(entry, events)
    this.#byId.set(record.id, entry)
    this.#created.insert(entry, wasCreatedBefore)
    if (record.idempotencyKey !== null) this.#byIdempotencyKey.set(idempotencyName(record), entry)
    this.scheduled.add(entry)
    this.counts.add(record)
    this.queue.add(entry, this.#options.clock.now())
    this.#hint(entry.record)
    return entry
  }

  /** The one way a run changes. Ending it wakes those that wait for it in the same write. */
  change(entry: RunEntry, change: RunChange, events: readonly EventTemplate[]): RunRecord {
    const hadEnded = isEnded(entry.record.status)
    this.#append(entry, events)
    const after = this.touch(entry, change)
    this.#hint(after)
    const hasEnded = isEnded(after.status)
    if (!hadEnded && hasEnded) this.#finish(entry)
    if (hadEnded && !hasEnded) {
      this.ended.revive(entry)
      this.scheduled.add(entry)
    }
    return after
  }

  /** A change that nobody is told of. */
  touch(entry: RunEntry, change: RunChange): RunRecord {
    const record: Writable<RunRecord> = entry.record
    const isMoved = !waitsAlike(record, change)
    const slot = record.concurrencySlot
    const counted = isMoved ? this.counts.countedAs(record) : null
    if (isMoved) this.queue.remove(entry)
    Object.assign(record, change)
    record.version += 1
    record.updatedAt = this.#options.clock.now()
    record.lastEventSequence = entry.events.length
    if (counted !== null) {
      this.counts.moveFrom(counted, record)
      this.#enter(entry, slot)
    }
    return record
  }

  /** A run that is suspended for its steps goes on. */
  wakeBySignal(entry: RunEntry, events: readonly EventTemplate[]): RunRecord {
    const { createdAt, wakes } = entry.record
    entry.lastSignal = wakes + 1
    const change = { wakes: wakes + 1, ...(isSuspended(entry.record) && { availableAt: createdAt }) }
    return this.change(entry, change, events)
  }

  /** One child less to wait for. */
  #wakeByChild(entry: RunEntry): void {
    const { record } = entry
    const woken = { ...record, wakes: record.wakes + 1 }
    const availableAt = isSuspended(record) ? wokenAt(woken, this.#options.clock.now()) : record.availableAt
    this.change(entry, { wakes: woken.wakes, availableAt }, [])
  }

  /**
   * Another run waits for this one from now on, as its parent does. One that has ended wakes nobody any more: it keeps
   * those for whom it must stay.
   */
  awaitAlso(entry: RunEntry, runId: string): void {
    const { parentRunId, alsoAwaitedBy, status } = entry.record
    if (runId === parentRunId || alsoAwaitedBy.includes(runId)) return
    const isWaiting = (id: string) => {
      const other = this.#byId.get(id)
      return other !== undefined && isLive(other)
    }
    const still = isEnded(status) ? alsoAwaitedBy.filter(isWaiting) : alsoAwaitedBy
    this.change(entry, { alsoAwaitedBy: Object.freeze([...still, runId]) }, [])
    if (isEnded(status)) this.ended.keepLonger(entry)
  }

  remove(entry: RunEntry): void {
    const { record } = entry
    this.queue.remove(entry)
    this.#byId.delete(record.id)
    this.#created.remove(entry)
    if (this.findByIdempotencyKey(record) === entry) this.#byIdempotencyKey.delete(idempotencyName(record))
    this.scheduled.remove(entry)
    this.counts.remove(record)
    this.running.delete(entry)
    this.placed.delete(entry)
    this.ended.forget(entry)
    if (record.logRef != null) this.#options.strays.add(record.logRef)
    this.#options.hints.noteChanged(record.id)
  }

  /** It has left its place in the queue, and had that slot there. */
  #enter(entry: RunEntry, slotBefore: number | null): void {
    const { record } = entry
    this.queue.moveSlot(record, slotBefore)
    if (record.status === 'running') this.running.add(entry)
    else this.running.delete(entry)
    if (record.status === 'assigned' || record.status === 'orphaned') this.placed.add(entry)
    else this.placed.delete(entry)
    this.queue.add(entry, this.#options.clock.now())
    if (slotBefore !== null && record.concurrencySlot === null) this.#options.hints.noteDue()
  }

  #finish(entry: RunEntry): void {
    for (const parent of this.#parentsOf(entry)) if (isLive(parent)) this.#wakeByChild(parent)
    this.ended.add(entry)
    this.#drop()
  }

  /** One that waits for the run, or may come to, and has not ended. */
  keeperOf(entry: RunEntry): RunEntry | undefined {
    return this.#parentsOf(entry).find(isLive)
  }

  /** Those that wait for the run, or may come to. */
  #parentsOf({ record: { parentRunId, alsoAwaitedBy } }: RunEntry): readonly RunEntry[] {
    if (parentRunId === null && alsoAwaitedBy.length === 0) return NO_ENTRIES
    return [parentRunId ?? '', ...alsoAwaitedBy].flatMap((id) => this.#byId.get(id) ?? [])
  }

  #drop(): void {
    while (this.ended.droppableCount > this.#options.keepEnded) {
      const oldest = this.ended.oldestDroppable
      if (oldest === undefined) return
      this.remove(oldest)
    }
  }

  #append(entry: RunEntry, templates: readonly EventTemplate[]): void {
    const { id: runId } = entry.record
    let seq = entry.events.length
    const createdAt: Instant = this.#options.clock.now()
    for (const { type, payload } of templates) {
      seq += 1
      entry.addEvent(Object.freeze({ runId, seq, type, payload, createdAt }))
    }
  }

  #hint({ id, status, availableAt }: RunRecord): void {
    this.#options.hints.noteChanged(id)
    if (status === 'assigned' || (status === 'pending' && availableAt !== null)) this.#options.hints.noteDue()
  }
}

const CREATED: Positions<RunEntry> = {
  of: ({ createdPosition }) => createdPosition,
  set: (entry, position) => {
    entry.createdPosition = position
  },
}

function wasCreatedBefore({ record: a }: RunEntry, { record: b }: RunEntry): boolean {
  return a.createdAt === b.createdAt ? a.id < b.id : a.createdAt < b.createdAt
}

type KeyedRun = Pick<RunRecord, 'tenant' | 'jobName' | 'idempotencyKey'>

function idempotencyName({ tenant, jobName, idempotencyKey }: KeyedRun): string {
  return JSON.stringify([tenant, jobName, idempotencyKey])
}

const NO_ENTRIES: readonly RunEntry[] = []

function isSuspended({ status, waitingFor }: RunRecord): boolean {
  return status === 'pending' && waitingFor?.kind === 'steps'
}

/** Whether the run stays where it is in the queue, and among the counts. */
function waitsAlike(record: RunRecord, change: RunChange): boolean {
  return (
    (change.status === undefined || change.status === record.status) &&
    (change.availableAt === undefined || change.availableAt === record.availableAt) &&
    (change.concurrencySlot === undefined || change.concurrencySlot === record.concurrencySlot) &&
    (change.waitingFor === undefined || change.waitingFor === record.waitingFor) &&
    (change.crashCount === undefined || change.crashCount === record.crashCount)
  )
}
