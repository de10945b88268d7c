import { capability, type EventStorage, type EventTail, type RunRecord } from '../port'
import { ask, type Engine, reportTrouble, troubleDelayMs } from '../engine'
import { isEnded } from '../base'
import { withLogs } from './stored-logs'

/** How many events of one run a query brings at most, and how many of all. */
const PAGE = 100
const MOST_EVENTS = 1000

/** Milliseconds between two queries that hints and newcomers ask for. */
const GAP_MS = 20

/** Milliseconds until the next query where nobody tells of new events; it grows while there are none. */
const FIRST_PAUSE_MS = 100
const GROWTH = 1.5

/** Where one reader stands, and what it knows. */
export interface Cursor {
  readonly runId: string
  readonly after: number
  /** The last look showed that there is more. */
  readonly isBehind: boolean
  /** Answer at once, with the run itself, also when there is nothing new. */
  readonly withRun: boolean
}

/** What is new after a cursor: events, or that there will be none. */
export interface Look extends EventTail {
  /** For those who asked. */
  readonly run: RunRecord | null
  /** Up to here there is nothing but these events. */
  readonly upTo: number
}

/** A look that is going on. */
export interface PendingLook {
  /** `null`: there is no such run (any more). */
  readonly found: Promise<Look | null>
  /** Gives it up. */
  leave(error: unknown): void
}

interface Waiting extends Cursor {
  /** The query that was sent last is for this one too. */
  isAsked: boolean
  readonly resolve: (look: Look | null) => void
  readonly reject: (error: unknown) => void
}

/** Those who wait for one run, longest first. */
interface Feed {
  readonly waiting: Set<Waiting>
  lastSeq: number
}

/**
 * Reads the new events of runs for everybody who follows one, with one query for all of them. It knows readers only
 * while they wait: who is slow, or has gone away, costs nothing.
 */
export class TailReader {
  readonly #engine: Engine
  readonly #feeds = new Map<string, Feed>()
  readonly #hinted = new Set<string>()
  #planned: { readonly dueAt: number; callOff(): void } | null = null
  #isReading = false
  #lastReadAt = Number.NEGATIVE_INFINITY
  #quietReads = 0
  #failures = 0
  #closedBy: Error | null = null

  constructor(engine: Engine) {
    this.#engine = engine
  }

  get isIdle(): boolean {
    return this.#feeds.size === 0
  }

  look(cursor: Cursor): PendingLook {
    let leave = (_error: unknown) => {}
    const found = new Promise<Look | null>((resolve, reject) => {
      const waiting = { ...cursor, isAsked: false, resolve, reject }
      leave = (error) => {
        this.#drop(waiting)
        reject(error)
      }
      if (this.#closedBy === null) this.#enter(waiting)
      else reject(this.#closedBy)
    })
    return { found, leave }
  }

  /** Somebody knows that the run changed. */
  noteChanged(runId: string): void {
    if (!this.#feeds.has(runId)) return
    this.#hinted.add(runId)
    this.#planWithin(GAP_MS)
  }

  close(error: Error): void {
    this.#closedBy = error
    for (const waiting of this.#everybody()) {
      this.#drop(waiting)
      waiting.reject(error)
    }
  }

  #everybody(): readonly Waiting[] {
    return [...this.#feeds.values()].flatMap(({ waiting }) => [...waiting])
  }

  #enter(waiting: Waiting): void {
    const feed = this.#feeds.get(waiting.runId) ?? { waiting: new Set(), lastSeq: 0 }
    this.#feeds.set(waiting.runId, feed)
    feed.waiting.add(waiting)
    this.#planWithin(waiting.isBehind ? 0 : GAP_MS)
  }

  #drop(waiting: Waiting): void {
    const { runId } = waiting
    const feed = this.#feeds.get(runId)
    feed?.waiting.delete(waiting)
    if (feed?.waiting.size !== 0) return
    this.#feeds.delete(runId)
    this.#hinted.delete(runId)
    // A timer nobody needs would keep the process.
    if (this.#feeds.size === 0) this.#callOff()
  }

  #callOff(): void {
    this.#planned?.callOff()
    this.#planned = null
  }

  /** Reads so many milliseconds after the last time, or before. Nobody hurries a storage that is in trouble. */
  #planWithin(ms: number): void {
    if (this.#isReading || this.#feeds.size === 0) return
    const dueAt = this.#lastReadAt + (this.#failures > 0 ? troubleDelayMs(this.#engine, this.#failures) : ms)
    if (this.#planned !== null && (this.#failures > 0 || this.#planned.dueAt <= dueAt)) return
    this.#callOff()
    const { clock } = this.#engine.environment
    const inMs = dueAt - clock.monotonic()
    if (inMs > 0) this.#planned = { dueAt, callOff: clock.schedule(inMs, () => void this.#read()) }
    else void this.#read()
  }

  async #read(): Promise<void> {
    this.#planned = null
    this.#isReading = true
    try {
      await this.#engine.breathe()
      const answered = await this.#ask()
      this.#quietReads = answered > 0 ? 0 : this.#quietReads + 1
      this.#failures = 0
    } catch (error) {
      this.#failures += 1
      if (this.#closedBy === null) reportTrouble(this.#engine, error, 'read events')
    }
    this.#lastReadAt = this.#engine.environment.clock.monotonic()
    this.#isReading = false
    this.#planWithin(this.#pauseMs())
  }

  #pauseMs(): number {
    const everybody = this.#everybody()
    const hasMore = everybody.some(({ runId, after, isBehind, isAsked }) =>
      isAsked ? after < (this.#feeds.get(runId)?.lastSeq ?? 0) : isBehind,
    )
    if (hasMore && this.#quietReads === 0) return 0
    if (this.#hinted.size > 0 || everybody.some(({ isAsked }) => !isAsked)) return GAP_MS
    const { environment, options } = this.#engine
    const pauseMs = Math.min(FIRST_PAUSE_MS * GROWTH ** this.#quietReads, options.pollingIntervalMs)
    return Math.round(pauseMs * (0.9 + environment.random() * 0.2))
  }

  /** How many readers got an answer. */
  async #ask(): Promise<number> {
    this.#hinted.clear()
    if (this.#feeds.size === 0) return 0
    const page = Math.max(1, Math.min(PAGE, Math.floor(MOST_EVENTS / this.#feeds.size)))
    const cursors = [...this.#feeds].map(([runId, feed]) => ({ runId, after: takeTurn(feed, page) }))
    const ids = cursors.flatMap(({ runId }) => (this.#wantsRun(runId) ? [runId] : []))
    const runs = ids.length === 0 ? [] : await ask(this.#engine, (storage) => storage.getRuns({ ids }))
    const runOf = new Map(runs.map((run) => [run.id, run]))
    const tails = await ask(this.#engine, () => readTails(this.#engine, cursors, page))
    const tailOf = new Map(tails.map((tail) => [tail.runId, tail]))
    return cursors.reduce((sum, { runId, after }) => {
      return sum + this.#answer({ runId, after, page, run: runOf.get(runId) ?? null, tail: tailOf.get(runId) })
    }, 0)
  }

  #wantsRun(runId: string): boolean {
    for (const { withRun } of this.#feeds.get(runId)?.waiting ?? []) if (withRun) return true
    return false
  }

  #answer({ runId, after, page, run, tail }: Answer): number {
    const feed = this.#feeds.get(runId)
    if (feed === undefined) return 0
    feed.lastSeq = tail?.lastSeq ?? 0
    const waiting = [...feed.waiting].filter(({ isAsked }) => isAsked)
    let answered = 0
    for (const each of waiting) {
      const look = tail === undefined ? null : lookFor(each, { after, page }, tail)
      if (look === undefined) continue
      answered += 1
      this.#drop(each)
      each.resolve(look === null ? null : { ...look, run })
    }
    return answered
  }
}

type Cursors = Parameters<EventStorage['tail']>[0]

/** One query, and one more if jobs logged. */
async function readTails(engine: Engine, cursors: Cursors, page: number): Promise<readonly EventTail[]> {
  const tails = await capability(engine.storage, 'events', 'subscribe()').tail(cursors, page)
  const all = await withLogs(
    engine,
    tails.flatMap(({ events }) => events),
  )
  const events = all.values()
  return tails.map((tail) => ({ ...tail, events: tail.events.map((event) => events.next().value ?? event) }))
}

/** From where it was read, and how far. */
interface Stretch {
  readonly after: number
  readonly page: number
}

interface Answer extends Stretch {
  readonly runId: string
  readonly run: RunRecord | null
  readonly tail: EventTail | undefined
}

/**
 * From where to read for this feed: from where the one stands who has waited longest for something that is there, or a
 * little before, for the sake of others. Who stands further on takes its part; who stands further back has its turn later.
 */
function takeTurn({ waiting, lastSeq }: Feed, page: number): number {
  const hungry = [...waiting].filter(({ isAsked, after }) => !isAsked || after < lastSeq)
  const candidates = hungry.length > 0 ? hungry : [...waiting]
  const first = candidates[0]
  if (first === undefined) return 0
  const near = candidates.map(({ after }) => after).filter((after) => after > first.after - page)
  const from = near.reduce((least, after) => Math.min(least, after), first.after)
  for (const each of waiting) each.isAsked = each.after >= from
  waiting.delete(first)
  waiting.add(first)
  return from
}

/** What of an answer is for this reader; `undefined` when it has to wait on. */
function lookFor(cursor: Cursor, from: Stretch, tail: EventTail): Omit<Look, 'run'> | undefined {
  const { after, withRun } = cursor
  const events = tail.events.filter(({ seq }) => seq > after)
  const upTo = events.at(-1)?.seq ?? after
  if (events.length > 0 || withRun) return { ...tail, events, upTo }
  if (!isEnded(tail.status)) return undefined
  if (tail.lastSeq <= after) return { ...tail, events, upTo }
  // Somebody removed events by hand: what is left of them comes after the hole.
  return after === from.after ? { ...tail, events, upTo: Math.min(after + from.page, tail.lastSeq) } : undefined
}
