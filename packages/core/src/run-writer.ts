import type { CommitLine } from './commits'
import type { Engine } from './engine'
import { toTemplate, type EventInput } from './events'
import type { RunStatus } from './lifecycle'
import type { CommitAnswer, Lease, NewLog, Outcome, Progress, RunCommit, StepWrite } from './storage'

/** How long something that has no commit of its own waits for one. */
const EVENT_RIDE_MS = 100
const PROGRESS_RIDE_MS = 250

/** What one commit takes at most: a longer one would hold up everybody else who writes. */
const MAX_PIECES = 1000
const MAX_LENGTH = 4 * 1024 * 1024

/** `eventSeq`: the number under which the step's event was stored. */
export type StepAnswer = CommitAnswer & { readonly eventSeq?: number }

export interface StepCommit {
  /** Rows in their order; more than one when the step goes on in a row of its own. */
  readonly writes: readonly StepWrite[]
  /** The highest index of a completed step, plus one; `null` leaves it. */
  readonly currentStepIndex: number | null
  /** Positions of the signals that the rows used up. */
  readonly consumedSignals: readonly number[]
  /** Stored with the row; emitted by the caller once it is kept. */
  readonly event: EventInput | null
}

/** Something to persist, in the order in which it happened. */
interface Piece {
  readonly steps?: readonly StepWrite[]
  readonly currentStepIndex?: number | null
  readonly consumedSignals?: readonly number[]
  readonly log?: NewLog
  readonly event?: EventInput | null
  readonly resolve?: (answer: StepAnswer) => void
}

/** What goes with one commit. */
interface Parcel {
  readonly pieces: readonly Piece[]
  readonly progress: Progress | null
  readonly outcome: Outcome | null
}

/** What a transaction carries as the run's commit in flight. */
export interface Taken {
  readonly commit: RunCommit
  /** Once `keep` or `drop` was called. */
  readonly answered: Promise<StepAnswer>
  /** It was committed, or the lease was found lost. */
  keep(answer: CommitAnswer): void
  /** It was rolled back: what it carried of others goes with the next commit. */
  giveBack(params: { readonly isNumberUsed: boolean }): void
  /** What became of it will never be known here. */
  drop(): void
  /**
   * Writes a commit of nothing under its number. Whatever became of the transaction, it is decided from then on: one
   * that was still under way finds its number taken. Only the database can tell how it was decided.
   */
  settleNumber(): Promise<CommitAnswer>
}

export interface RunWriterParams {
  readonly engine: Engine
  readonly line: CommitLine
  readonly lease: Lease
  /** Every answer, and when what it answers was sent. */
  readonly onAnswer: (answer: CommitAnswer, sentAt: number) => void
  /** The storage will never take what was sent. */
  readonly onRejected: (error: unknown) => void
}

/** Gathers what one execution has to persist. At most one commit is in flight; what settles meanwhile is the next. */
export class RunWriter {
  readonly #params: RunWriterParams
  #pieces: Piece[] = []
  #progress: Progress | null = null
  #outcome: Outcome | null = null
  #commitNo = 0
  #inFlight = false
  /** Transactions that wait to be the commit in flight. */
  readonly #turns: (() => void)[] = []
  #finished = false
  #ride: { readonly dueAt: number; callOff(): void } | null = null

  constructor(params: RunWriterParams) {
    this.#params = params
  }

  commitStep({ writes, currentStepIndex, consumedSignals, event }: StepCommit): Promise<StepAnswer> {
    return this.#commitNow({ steps: writes, currentStepIndex, consumedSignals, event: this.#stored(event) })
  }

  finish(outcome: Outcome): Promise<CommitAnswer> {
    this.#outcome = outcome
    const answer = this.#commitNow({})
    this.#finished = true
    return answer
  }

  /** Nothing else of the run is written until `work` has settled: a transaction in it is the commit in flight. */
  async exclusively<T>(work: (take: (step: StepCommit) => Taken) => Promise<T>): Promise<T> {
    if (this.#inFlight) await new Promise<void>((resolve) => this.#turns.push(resolve))
    this.#inFlight = true
    try {
      return await work((step) => this.#take(step))
    } finally {
      this.#next()
    }
  }

  /** Stores the event with the next commit, or soon. */
  ride(event: EventInput): void {
    if (this.#finished || this.#stored(event) === null) return
    this.#pieces.push({ event })
    this.#flushWithin(EVENT_RIDE_MS)
  }

  log(log: NewLog): void {
    if (this.#finished) return
    this.#pieces.push({ log })
    this.#flushWithin(EVENT_RIDE_MS)
  }

  /** The last value wins. */
  progress(progress: Progress, event: EventInput): void {
    if (this.#finished) return
    this.#progress = progress
    // One after another with nothing in between are one.
    if (this.#pieces.at(-1)?.event?.type === event.type) this.#pieces.pop()
    if (this.#stored(event) !== null) this.#pieces.push({ event })
    this.#flushWithin(PROGRESS_RIDE_MS)
  }

  #stored(event: EventInput | null): EventInput | null {
    return event !== null && this.#params.engine.plugins.recordsEvent(event.type) ? event : null
  }

  #commitNow(piece: Piece): Promise<StepAnswer> {
    // What an abandoned body hands in after the end of its execution comes too late.
    if (this.#finished) return Promise.resolve({ kept: false })
    return new Promise((resolve) => {
      this.#pieces.push({ ...piece, resolve })
      this.#flush()
    })
  }

  #flushWithin(ms: number): void {
    const { clock } = this.#params.engine.environment
    const dueAt = clock.monotonic() + ms
    if (this.#inFlight || (this.#ride !== null && this.#ride.dueAt <= dueAt)) return
    this.#ride?.callOff()
    this.#ride = { dueAt, callOff: clock.schedule(ms, () => this.#flush()) }
  }

  #flush(): void {
    this.#ride?.callOff()
    this.#ride = null
    if (this.#inFlight || !this.#hasSomething()) return
    const parcel = this.#takeParcel()
    const sentAt = this.#params.engine.environment.clock.monotonic()
    this.#inFlight = true
    this.#params.line
      .send(this.#toCommit(parcel))
      .then((answer) => this.#onAnswer(parcel, answer, sentAt))
      .catch((error: unknown) => this.#onRejected(parcel, error))
  }

  #hasSomething(): boolean {
    return this.#pieces.length > 0 || this.#progress !== null
  }

  /** The outcome goes with the last pieces. */
  #takeParcel(): Parcel {
    const pieces = this.#pieces.splice(0, countForOneCommit(this.#pieces))
    const parcel = { pieces, progress: this.#progress, outcome: this.#pieces.length === 0 ? this.#outcome : null }
    this.#progress = null
    return parcel
  }

  #toCommit({ pieces, progress, outcome }: Parcel): RunCommit {
    this.#commitNo += 1
    return {
      lease: this.#params.lease,
      commitNo: this.#commitNo,
      leaseMs: this.#params.engine.options.leaseMs,
      currentStepIndex: lastOf(pieces.flatMap((piece) => piece.currentStepIndex ?? [])),
      progress,
      steps: pieces.flatMap((piece) => piece.steps ?? []),
      logs: pieces.flatMap((piece) => piece.log ?? []),
      events: eventsOf(pieces).map(toTemplate),
      consumedSignals: pieces.flatMap((piece) => piece.consumedSignals ?? []),
      outcome,
    }
  }

  /** All that has gathered, and the step as its last piece. */
  #take({ writes, event, ...rest }: StepCommit): Taken {
    const { clock } = this.#params.engine.environment
    const others = { pieces: this.#pieces, progress: this.#progress }
    const sentAt = clock.monotonic()
    let resolve: (answer: StepAnswer) => void = () => {}
    const answered = new Promise<StepAnswer>((settleStep) => {
      resolve = settleStep
    })
    const step: Piece = { ...rest, steps: writes, event: this.#stored(event), resolve }
    const parcel: Parcel = { pieces: [...others.pieces, step], progress: others.progress, outcome: null }
    this.#pieces = []
    this.#progress = null
    const commit = this.#toCommit(parcel)
    return {
      commit,
      answered,
      keep: (answer) => {
        this.#params.onAnswer(answer, sentAt)
        settle(parcel, answer)
      },
      giveBack: ({ isNumberUsed }) => {
        if (!isNumberUsed) this.#commitNo -= 1
        this.#pieces = [...others.pieces, ...this.#pieces]
        this.#progress ??= others.progress
      },
      drop: () => settle(parcel, { kept: false }),
      settleNumber: () => this.#settleNumber(parcel, commit),
    }
  }

  async #settleNumber(parcel: Parcel, commit: RunCommit): Promise<CommitAnswer> {
    const nothing = { currentStepIndex: null, progress: null, steps: [], logs: [], events: [], consumedSignals: [] }
    try {
      return await this.#params.line.send({ ...commit, ...nothing })
    } catch (error) {
      this.#giveUp(parcel, error)
      return { kept: false }
    }
  }

  /** The next transaction, or what has gathered. */
  #next(): void {
    const turn = this.#turns.shift()
    if (turn !== undefined) {
      turn()
      return
    }
    this.#inFlight = false
    this.#flushGathered()
  }

  #onAnswer(parcel: Parcel, answer: CommitAnswer, sentAt: number): void {
    this.#params.onAnswer(answer, sentAt)
    settle(parcel, answer)
    this.#next()
  }

  #flushGathered(): void {
    if (this.#pieces.some((piece) => piece.resolve !== undefined) || this.#pieces.length >= MAX_PIECES) this.#flush()
    else if (this.#hasSomething()) this.#flushWithin(EVENT_RIDE_MS)
  }

  #onRejected(parcel: Parcel, error: unknown): void {
    this.#giveUp(parcel, error)
    this.#next()
  }

  #giveUp(parcel: Parcel, error: unknown): void {
    this.#finished = true
    this.#params.onRejected(error)
    settle(parcel, { kept: false })
    settle({ pieces: this.#pieces, outcome: null }, { kept: false })
    this.#pieces = []
    this.#progress = null
  }
}

function countForOneCommit(pieces: readonly Piece[]): number {
  let length = 0
  const end = pieces.findIndex(({ steps = [], log }, index) => {
    for (const { output, checkpoint } of steps) length += (output?.length ?? 0) + (checkpoint?.length ?? 0)
    length += log?.data?.length ?? 0
    return index === MAX_PIECES || (index > 0 && length > MAX_LENGTH)
  })
  return end === -1 ? pieces.length : end
}

/** The numbers of a commit's events follow from the last one it took. */
function settle({ pieces, outcome }: Pick<Parcel, 'pieces' | 'outcome'>, answer: CommitAnswer): void {
  const last = answer.kept ? answer.seq - countLast(outcome, answer.status) : 0
  let eventSeq = last - eventsOf(pieces).length
  for (const { event, resolve } of pieces) {
    const hasEvent = event !== undefined && event !== null
    if (hasEvent) eventSeq += 1
    resolve?.(answer.kept && hasEvent ? { ...answer, eventSeq } : answer)
  }
}

function lastOf(numbers: readonly number[]): number | null {
  return numbers.at(-1) ?? null
}

function eventsOf(pieces: readonly Piece[]): readonly EventInput[] {
  return pieces.flatMap((piece) => piece.event ?? [])
}

function countLast(outcome: Outcome | null, status: RunStatus): number {
  if (outcome === null) return 0
  return status === 'cancelled' ? outcome.eventsIfCancelled.length : outcome.events.length
}
