import { type Instant, isSuspect, type RunRecord } from '../port'
import { claimsBefore } from './claim-order'
import { Heap, type HeapItem } from './heap'
import { KeyGroups } from './key-groups'
import { Line } from './line'
import type { Rules } from './rules'
import type { RunEntry } from './run-entry'

/** A run without a concurrency key, or the runs of one key, of which the first stands for all. */
export type Candidate = HeapItem & { readonly head: RunEntry }

/** What a worker asks for. */
interface Wanted {
  readonly jobs: ReadonlySet<string>
  readonly takesSuspect: boolean
}

interface JobQueue {
  readonly later: Heap<RunEntry>
  readonly ready: Line<Candidate>
  /** Apart from the others, which are taken past those of them that wait. */
  readonly suspects: Line<Candidate>
  /** Runs whose time has come, those held up by a concurrency key included. */
  due: number
}

/**
 * Which run is next. Runs that are due wait by claim order in `ready`, the others by time in `later` until they are.
 * Those that share a concurrency key wait together behind one candidate that is in `ready` only while a slot is free,
 * so that no number of blocked runs is ever walked.
 */
export class ReadyQueue {
  readonly #jobs = new Map<string, JobQueue>()
  readonly #groups: KeyGroups
  readonly #rules: Rules

  constructor(rules: Rules) {
    this.#rules = rules
    this.#groups = new KeyGroups({
      add: (keyed) => lineOf(this.#queueOf(keyed.jobName), keyed.isSuspect).push(keyed),
      remove: (keyed) => {
        const queue = this.#jobs.get(keyed.jobName)
        if (queue !== undefined) lineOf(queue, keyed.isSuspect).remove(keyed)
      },
      mayStart: (isFree) => rules.allows('claim', 'slot', isFree),
    })
  }

  add(entry: RunEntry, now: Instant): void {
    const { availableAt, status, jobName } = entry.record
    if (availableAt === null || !this.#rules.allowsFrom('claim', status)) return
    const queue = this.#queueOf(jobName)
    if (this.#isDue(entry, now)) this.#addDue(queue, entry)
    else {
      entry.waitsIn = 'later'
      queue.later.push(entry)
    }
  }

  remove(entry: RunEntry): void {
    const queue = this.#jobs.get(entry.record.jobName)
    if (entry.waitsIn === null || queue === undefined) return
    if (entry.waitsIn === 'later') queue.later.remove(entry)
    else {
      queue.due -= 1
      if (entry.waitsIn === 'ready') lineOf(queue, isSuspect(entry.record)).remove(entry)
      else this.#groups.leave(entry)
    }
    entry.waitsIn = null
    if (queue.due === 0 && queue.later.size === 0) this.#jobs.delete(entry.record.jobName)
  }

  /** The slot the run would get; `null` for a run without a key. */
  slotFor(record: RunRecord): number | null {
    return record.concurrencyKey === null ? null : (record.concurrencySlot ?? this.#groups.freeSlot(record))
  }

  /** So many runs of its key may start; for one without a key, or with a slot, no number. */
  roomFor(record: RunRecord): number {
    const needsSlot = record.concurrencyKey !== null && record.concurrencySlot === null
    return needsSlot ? this.#groups.roomFor(record) : Number.POSITIVE_INFINITY
  }

  /** The run had another slot before, or none. */
  moveSlot(record: RunRecord, before: number | null): void {
    const { concurrencySlot: after } = record
    if (before === after) return
    if (before !== null) this.#groups.giveBack(record, before)
    if (after !== null) this.#groups.take(record, after)
  }

  /** The due run that comes first of those the worker may claim. */
  first({ jobs, takesSuspect }: Wanted, now: Instant): RunEntry | undefined {
    const withSuspects = this.#rules.allows('claim', 'suspect', () => takesSuspect)
    let best: RunEntry | undefined
    for (const [jobName, queue] of this.#jobs) {
      if (!this.#rules.allows('claim', 'known', () => jobs.has(jobName))) continue
      this.#ripen(queue, now)
      best = earlier(best, queue.ready.peek()?.head)
      if (withSuspects) best = earlier(best, queue.suspects.peek()?.head)
    }
    return best
  }

  /** When the first run of each job is due; `null` when it is due already. */
  *nextOfEachJob(now: Instant): Iterable<{ readonly jobName: string; readonly at: Instant | null }> {
    for (const [jobName, queue] of this.#jobs) {
      this.#ripen(queue, now)
      yield { jobName, at: queue.due > 0 ? null : (queue.later.peek()?.record.availableAt ?? null) }
    }
  }

  #ripen(queue: JobQueue, now: Instant): void {
    for (let entry = queue.later.peek(); entry !== undefined; entry = queue.later.peek()) {
      if (!this.#isDue(entry, now)) return
      queue.later.remove(entry)
      this.#addDue(queue, entry)
    }
  }

  #isDue({ record: { availableAt } }: RunEntry, now: Instant): boolean {
    return this.#rules.allows('claim', 'due', () => availableAt !== null && availableAt <= now)
  }

  #addDue(queue: JobQueue, entry: RunEntry): void {
    const { concurrencyKey, concurrencySlot } = entry.record
    queue.due += 1
    entry.waitsIn = concurrencyKey === null || concurrencySlot !== null ? 'ready' : 'keyed'
    if (entry.waitsIn === 'ready') lineOf(queue, isSuspect(entry.record)).push(entry)
    else this.#groups.join(entry)
  }

  #queueOf(jobName: string): JobQueue {
    let queue = this.#jobs.get(jobName)
    if (queue === undefined) {
      const [ready, suspects] = [new Line(headClaimsBefore), new Line(headClaimsBefore)]
      queue = { later: new Heap(isDueBefore), ready, suspects, due: 0 }
      this.#jobs.set(jobName, queue)
    }
    return queue
  }
}

function lineOf({ ready, suspects }: JobQueue, isOfSuspects: boolean): Line<Candidate> {
  return isOfSuspects ? suspects : ready
}

function earlier(one: RunEntry | undefined, other: RunEntry | undefined): RunEntry | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return claimsBefore(other, one) ? other : one
}

function headClaimsBefore(a: Candidate, b: Candidate): boolean {
  return claimsBefore(a.head, b.head)
}

function isDueBefore({ record: a }: RunEntry, { record: b }: RunEntry): boolean {
  return (a.availableAt ?? '') < (b.availableAt ?? '')
}
