import { isSuspect, type RunRecord } from '../port'
import { claimsBefore } from './claim-order'
import type { HeapItem } from './heap'
import { Line } from './line'
import { NOWHERE } from './gap-list'
import type { RunEntry } from './run-entry'

/** The due runs of one job that share a concurrency key and a limit, suspects or others: one stands for all, in claim order. */
export class KeyedRuns implements HeapItem {
  position = NOWHERE
  readonly runs = new Line<RunEntry>(claimsBefore)
  readonly jobName: string
  readonly limit: number
  readonly isSuspect: boolean

  constructor(record: RunRecord) {
    this.isSuspect = isSuspect(record)
    this.jobName = record.jobName
    this.limit = record.concurrencyLimit
  }

  get head(): RunEntry {
    const first = this.runs.peek()
    if (first === undefined) throw new Error('A candidate without runs was left in the queue.')
    return first
  }
}

/** All that shares one (tenant, key): the slots taken, and who waits for one. */
interface KeyGroup {
  readonly taken: Set<number>
  readonly waiting: Map<string, KeyedRuns>
}

/** The ready lines, as the groups see them. */
interface Candidates {
  add(keyed: KeyedRuns): void
  remove(keyed: KeyedRuns): void
  mayStart(isFree: () => boolean): boolean
}

export class KeyGroups {
  readonly #groups = new Map<string, KeyGroup>()
  readonly #candidates: Candidates

  constructor(candidates: Candidates) {
    this.#candidates = candidates
  }

  freeSlot(record: RunRecord): number {
    return lowestFree(this.#groups.get(groupName(record))?.taken)
  }

  /** So many more of the run's key may start, by its own limit. */
  roomFor(record: RunRecord): number {
    const taken = this.#groups.get(groupName(record))?.taken ?? NO_SLOTS
    return record.concurrencyLimit - [...taken].filter((slot) => slot < record.concurrencyLimit).length
  }

  take(record: RunRecord, slot: number): void {
    this.#change(record, (group) => group.taken.add(slot))
  }

  giveBack(record: RunRecord, slot: number): void {
    this.#change(record, (group) => group.taken.delete(slot))
  }

  join(entry: RunEntry): void {
    this.#change(entry.record, (group) => {
      const name = waitingName(entry.record)
      const keyed = group.waiting.get(name) ?? new KeyedRuns(entry.record)
      group.waiting.set(name, keyed)
      keyed.runs.push(entry)
    })
  }

  leave(entry: RunEntry): void {
    this.#change(entry.record, (group) => {
      const name = waitingName(entry.record)
      const keyed = group.waiting.get(name)
      keyed?.runs.remove(entry)
      if (keyed?.runs.size === 0) group.waiting.delete(name)
    })
  }

  /** Candidates are taken out around every change: their place depends on their first run and on the free slots. */
  #change(record: RunRecord, apply: (group: KeyGroup) => void): void {
    const name = groupName(record)
    const group = this.#groups.get(name) ?? { taken: new Set(), waiting: new Map() }
    for (const keyed of group.waiting.values()) this.#candidates.remove(keyed)
    apply(group)
    const free = lowestFree(group.taken)
    for (const keyed of group.waiting.values()) {
      if (this.#candidates.mayStart(() => free < keyed.limit)) this.#candidates.add(keyed)
    }
    if (group.taken.size === 0 && group.waiting.size === 0) this.#groups.delete(name)
    else this.#groups.set(name, group)
  }
}

const NO_SLOTS: ReadonlySet<number> = new Set()

function lowestFree(taken: ReadonlySet<number> | undefined): number {
  let slot = 0
  while (taken?.has(slot) === true) slot += 1
  return slot
}

function groupName({ tenant, concurrencyKey }: RunRecord): string {
  return JSON.stringify([tenant, concurrencyKey])
}

function waitingName(record: RunRecord): string {
  return JSON.stringify([record.jobName, record.concurrencyLimit, isSuspect(record)])
}
