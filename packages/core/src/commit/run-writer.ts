import { ChunkBacklog, CHUNKS_TOGETHER, StreamHoles } from './streams'
import type { CommitLine } from './commits'
import type { Engine } from '../engine'
import { isRejection, type StorageError } from '../base'
import type { EventInput } from '../job'
import {
  contentsOf,
  countForOneCommit,
  hasProgressed,
  joinChunks,
  laterThan,
  MAX_PIECES,
  NOTHING,
  type Parcel,
  type Piece,
  type Refused,
  settle,
  type StepAnswer,
} from './parcel'
import type { CommitAnswer, Lease, NewLog, Outcome, Progress, RunCommit, StepWrite } from '../port'
import type { StepCommit, Take, Taken } from './step-commit'

/** How long something that has no commit of its own waits for one. */
const EVENT_RIDE_MS = 100
const PROGRESS_RIDE_MS = 250
const CHUNK_RIDE_MS = 50

/** A chunk of a stream. */
export interface ChunkWrite {
  readonly event: EventInput<'step:chunk'>
  readonly stepId: string
  /** Of its JSON. */
  readonly length: number
  /** Goes with the first chunk of a start, so that the next start knows of it. */
  readonly row: StepWrite | null
}

export interface RunWriterParams {
  readonly engine: Engine
  readonly line: CommitLine
  readonly lease: Lease
  /** How long it is to hold from each commit on. */
  readonly leaseMs: () => number
  /** Every answer, and when what it answers was sent. */
  readonly onAnswer: (answer: CommitAnswer, sentAt: number) => void
  /** A commit with which the run got further was kept. */
  readonly onProgress: () => void
  /** Nothing of this execution can be stored any more. */
  readonly onGivenUp: () => void
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
  readonly #chunks = new ChunkBacklog()
  readonly #holes = new StreamHoles()
  #finished = false
  /** Something was dropped that what comes later builds on. */
  #isTorn = false
  #lastPiece: Piece | null = null
  /** So many of the pieces go one by one: among them is one that the storage refuses. */
  #suspected = 0
  #ride: { readonly dueAt: number; callOff(): void } | null = null

  constructor(params: RunWriterParams) {
    this.#params = params
  }

  /** `answer` is called once. */
  commitStep(step: StepCommit, answer: (answer: StepAnswer) => void): void {
    const { writes, event, children, consumedSignals, currentStepIndex, hasProgressed } = step
    const refusal = this.#holes.refusalIn(writes)
    if (refusal !== undefined) answer({ kept: false, refusal })
    // What an abandoned body hands in after the end of its execution comes too late.
    else if (this.#isClosed()) answer({ kept: false })
    else {
      const stored = this.#stored(event)
      const own = { children, consumedSignals, currentStepIndex, hasProgressed }
      this.#pieces.push({ ...own, steps: writes, event: stored, resolve: answer })
      this.#flush()
    }
  }

  /** An outcome that was refused may be followed by another one. */
  finish(outcome: Outcome): Promise<StepAnswer> {
    this.#outcome = outcome
    const answer = this.#finished ? Promise.resolve({ kept: false } as const) : this.#end()
    this.#finished = true
    return answer
  }

  #end(): Promise<StepAnswer> {
    return new Promise((resolve) => {
      this.#lastPiece = { resolve }
      this.#pieces.push(this.#lastPiece)
      this.#flush()
    })
  }

  /** Nothing else of the run is written until `work` has settled: a transaction in it is the commit in flight. */
  async exclusively<T>(work: (take: Take) => Promise<T>): Promise<T> {
    if (this.#inFlight) await new Promise<void>((resolve) => this.#turns.push(resolve))
    this.#inFlight = true
    try {
      return await work((step, isAlone) => this.#take(step, isAlone))
    } finally {
      this.#next()
    }
  }

  /** Stores the event with the next commit, or soon. */
  ride(event: EventInput): void {
    if (this.#isClosed() || this.#stored(event) === null) return
    this.#pieces.push({ event })
    this.#flushWithin(EVENT_RIDE_MS)
  }

  /** The event points at the log: its text is stored once. */
  log(log: NewLog, event: EventInput): void {
    if (this.#isClosed()) return
    this.#pieces.push({ log, event: this.#stored(event) })
    this.#flushWithin(EVENT_RIDE_MS)
  }

  /** A stream says from here on what it has to say from its beginning. */
  restart(event: EventInput<'step:restart'>, stepId: string): void {
    this.#holes.fill(stepId)
    this.ride(event)
  }

  /**
   * Stores the chunk soon, with others. Settles at once unless too much is waiting to be stored, or one before it was
   * refused.
   */
  chunk({ event, stepId, length, row }: ChunkWrite): Promise<void> {
    if (this.#isClosed() || this.#stored(event) === null) return Promise.resolve()
    const refusal = this.#holes.refusalOf(stepId)
    if (refusal !== undefined) return Promise.reject(refusal)
    const last = this.#pieces.at(-1)
    const joined = last === undefined ? null : joinChunks(last, event, length)
    if (joined !== null) this.#pieces[this.#pieces.length - 1] = joined
    else {
      const dueAt = this.#params.engine.environment.clock.monotonic() + CHUNK_RIDE_MS
      this.#pieces.push({ event, chunk: { stepId, length, dueAt }, ...(row !== null && { steps: [row] }) })
    }
    const room = this.#chunks.add(length)
    if (this.#chunks.gathered >= CHUNKS_TOGETHER) this.#flush()
    else this.#flushWithin(CHUNK_RIDE_MS)
    return room
  }

  /** The last value wins. */
  progress(progress: Progress, event: EventInput): void {
    if (this.#isClosed()) return
    this.#progress = progress
    // One after another with nothing in between are one.
    if (this.#pieces.at(-1)?.event?.type === event.type) this.#pieces.pop()
    if (this.#stored(event) !== null) this.#pieces.push({ event })
    this.#flushWithin(PROGRESS_RIDE_MS)
  }

  #stored(event: EventInput | null): EventInput | null {
    return event !== null && this.#params.engine.plugins.recordsEvent(event.type) ? event : null
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
    this.#params.line.send(this.#toCommit(parcel), {
      answer: (answer) => this.#onAnswer(parcel, answer, sentAt),
      fail: (error) => this.#onRejected(parcel, error),
    })
  }

  #hasSomething(): boolean {
    return this.#pieces.length > 0 || this.#progress !== null
  }

  /** The outcome goes with the last pieces. */
  #takeParcel(): Parcel {
    const isSuspected = this.#suspected > 0
    if (isSuspected && this.#progress !== null && this.#isOutcomeNext()) return this.#takeProgress()
    const pieces = this.#pieces.splice(0, isSuspected ? 1 : countForOneCommit(this.#pieces))
    this.#suspected = Math.max(0, this.#suspected - 1)
    this.#chunks.take(pieces)
    const outcome = this.#pieces.length === 0 ? this.#outcome : null
    if (isSuspected) return { pieces, progress: null, outcome }
    const { progress } = this.#takeProgress()
    return { pieces, progress, outcome }
  }

  #isOutcomeNext(): boolean {
    return this.#outcome !== null && this.#pieces.length === 1
  }

  #takeProgress(): Parcel {
    const progress = this.#progress
    this.#progress = null
    return { ...NOTHING, progress }
  }

  #toCommit(parcel: Parcel): RunCommit {
    this.#commitNo += 1
    const contents = contentsOf(parcel)
    return {
      lease: this.#params.lease,
      commitNo: this.#commitNo,
      leaseMs: this.#params.leaseMs(),
      hasProgressed: contents.hasProgressed,
      currentStepIndex: contents.currentStepIndex,
      progress: contents.progress,
      steps: contents.steps,
      children: contents.children,
      logs: contents.logs,
      events: contents.events,
      consumedSignals: contents.consumedSignals,
      outcome: contents.outcome,
    }
  }

  /** All that has gathered, unless it goes alone, and the step as its last piece. */
  #take({ writes, event, ...rest }: StepCommit, isAlone: boolean): Taken {
    const { clock } = this.#params.engine.environment
    const others = isAlone ? NOTHING : { pieces: this.#pieces, progress: this.#progress }
    const sentAt = clock.monotonic()
    let resolve: (answer: StepAnswer) => void = () => {}
    const answered = new Promise<StepAnswer>((settleStep) => {
      resolve = settleStep
    })
    const step: Piece = { ...rest, steps: writes, event: this.#stored(event), resolve }
    const parcel: Parcel = { pieces: [...others.pieces, step], progress: others.progress, outcome: null }
    if (!isAlone) {
      this.#pieces = []
      this.#progress = null
      this.#chunks.take(others.pieces)
    }
    const commit = this.#toCommit(parcel)
    return {
      commit,
      answered,
      isAlone: others.pieces.length === 0 && others.progress === null,
      keep: (answer) => {
        this.#params.onAnswer(answer, sentAt)
        if (isAlone) this.#pieces = this.#pieces.map((piece) => laterThan(piece, rest.currentStepIndex))
        this.#settle(parcel, answer)
      },
      giveBack: ({ isNumberUsed, isSuspected = false }) => {
        if (!isNumberUsed) this.#commitNo -= 1
        this.#chunks.giveBack(others.pieces)
        this.#pieces = [...others.pieces, ...this.#pieces]
        this.#progress ??= others.progress
        if (isSuspected) this.#suspected = others.pieces.length
      },
      drop: () => this.#tear(parcel),
      settleNumber: () => this.#settleNumber(parcel, commit),
    }
  }

  #isClosed(): boolean {
    return this.#finished || this.#isTorn
  }

  #tear({ pieces }: Parcel): void {
    this.#isTorn = true
    const lost = this.#pieces.filter((piece) => piece !== this.#lastPiece)
    this.#pieces = this.#pieces.filter((piece) => piece === this.#lastPiece)
    this.#chunks.take(lost)
    this.#progress = null
    this.#settle({ pieces: [...pieces, ...lost], outcome: null }, { kept: false })
  }

  async #settleNumber(parcel: Parcel, commit: RunCommit): Promise<CommitAnswer> {
    const sentAt = this.#params.engine.environment.clock.monotonic()
    try {
      const empty: RunCommit = { ...commit, ...contentsOf(NOTHING) }
      const answer = await new Promise<CommitAnswer>((resolve, fail) =>
        this.#params.line.send(empty, { answer: resolve, fail }),
      )
      // It may tell of a cancel, before the transaction is begun again.
      this.#params.onAnswer(answer, sentAt)
      return answer
    } catch {
      this.#giveUp(parcel)
      return { kept: false }
    }
  }

  /** The next transaction, or what has gathered. */
  #next(): void {
    const turn = this.#suspected > 0 ? undefined : this.#turns.shift()
    if (turn !== undefined) {
      turn()
      return
    }
    this.#inFlight = false
    this.#flushGathered()
  }

  #onAnswer(parcel: Parcel, answer: CommitAnswer, sentAt: number): void {
    this.#params.onAnswer(answer, sentAt)
    this.#settle(parcel, answer)
    this.#next()
  }

  #flushGathered(): void {
    const isUrgent = this.#suspected > 0 || this.#pieces.some((piece) => piece.resolve !== undefined)
    const isMuch = this.#pieces.length >= MAX_PIECES || this.#chunks.gathered >= CHUNKS_TOGETHER
    if (isUrgent || isMuch) this.#flush()
    else if (this.#hasSomething()) this.#flushWithin(this.#rideMs())
  }

  #rideMs(): number {
    const chunk = this.#pieces.find((piece) => piece.chunk !== undefined)?.chunk
    if (chunk === undefined) return EVENT_RIDE_MS
    return Math.max(0, chunk.dueAt - this.#params.engine.environment.clock.monotonic())
  }

  #settle(parcel: Pick<Parcel, 'pieces' | 'outcome'>, answer: CommitAnswer | Refused): void {
    if (answer.kept && hasProgressed(parcel)) this.#params.onProgress()
    settle(parcel, answer)
    this.#chunks.settle(parcel.pieces)
  }

  #onRejected(parcel: Parcel, error: unknown): void {
    if (isRejection(error)) this.#onRefused(parcel, error)
    else this.#giveUp(parcel)
    this.#next()
  }

  /** Nothing of it was written. What was together goes again by itself: only the piece that is refused is left out. */
  #onRefused({ pieces, progress, outcome }: Parcel, refusal: StorageError): void {
    this.#commitNo -= 1
    if (pieces.length + (progress === null ? 0 : 1) > 1) {
      this.#chunks.giveBack(pieces)
      this.#pieces = [...pieces, ...this.#pieces]
      this.#progress ??= progress
      this.#suspected = pieces.length
      return
    }
    if (outcome !== null) {
      this.#finished = false
      this.#outcome = null
    }
    this.#settle({ pieces, outcome: null }, { kept: false, refusal })
    for (const { chunk } of pieces) if (chunk !== undefined) this.#noteHole(chunk.stepId, refusal)
  }

  /** The end of the stream may be on its way already. */
  #noteHole(stepId: string, refusal: StorageError): void {
    this.#holes.note(stepId, refusal)
    const isEnd = ({ steps }: Piece) => this.#holes.refusalIn(steps) !== undefined
    const ends = this.#pieces.filter(isEnd)
    if (ends.length === 0) return
    this.#suspected -= this.#pieces.slice(0, this.#suspected).filter(isEnd).length
    this.#pieces = this.#pieces.filter((piece) => !isEnd(piece))
    this.#settle({ pieces: ends, outcome: null }, { kept: false, refusal })
  }

  /** Not even the end of the run can be stored. */
  giveUp(): void {
    this.#giveUp(NOTHING)
  }

  #giveUp(parcel: Parcel): void {
    this.#finished = true
    this.#params.onGivenUp()
    this.#settle(parcel, { kept: false })
    this.#settle({ pieces: this.#pieces, outcome: null }, { kept: false })
    this.#pieces = []
    this.#progress = null
  }
}
