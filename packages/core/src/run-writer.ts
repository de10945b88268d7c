import type { CommitLine } from './commits'
import type { Engine } from './engine'
import { toTemplate, type EventInput } from './events'
import type { RunStatus } from './lifecycle'
import type { CommitAnswer, Lease, NewLog, Outcome, Progress, RunCommit, StepWrite } from './storage'

/** How long something that has no commit of its own waits for one. */
const EVENT_RIDE_MS = 100
const PROGRESS_RIDE_MS = 250

/** `eventSeq`: the number under which the step's event was stored. */
export type StepAnswer = CommitAnswer & { readonly eventSeq?: number }

export interface StepCommit {
  readonly write: StepWrite
  /** The highest index of a completed step, plus one; `null` leaves it. */
  readonly currentStepIndex: number | null
  /** Stored with the row; emitted by the caller once it is kept. */
  readonly event: EventInput | null
}

interface Waiting {
  readonly event: EventInput | null
  readonly resolve: (answer: StepAnswer) => void
}

interface Gathered {
  readonly steps: StepWrite[]
  readonly logs: NewLog[]
  readonly events: EventInput[]
  readonly waiting: Waiting[]
  progress: Progress | null
  currentStepIndex: number | null
  outcome: Outcome | null
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
  #gathered = nothing()
  #commitNo = 0
  #inFlight = false
  #finished = false
  #ride: { readonly dueAt: number; callOff(): void } | null = null

  constructor(params: RunWriterParams) {
    this.#params = params
  }

  commitStep({ write, currentStepIndex, event }: StepCommit): Promise<StepAnswer> {
    const stored = event !== null && this.#params.engine.plugins.recordsEvent(event.type) ? event : null
    return this.#commitNow(stored, (gathered) => {
      gathered.steps.push(write)
      gathered.currentStepIndex = currentStepIndex ?? gathered.currentStepIndex
    })
  }

  finish(outcome: Outcome): Promise<CommitAnswer> {
    const answer = this.#commitNow(null, (gathered) => {
      gathered.outcome = outcome
    })
    this.#finished = true
    return answer
  }

  /** Stores the event with the next commit, or soon. */
  ride(event: EventInput): void {
    if (this.#finished || !this.#params.engine.plugins.recordsEvent(event.type)) return
    this.#gathered.events.push(event)
    this.#flushWithin(EVENT_RIDE_MS)
  }

  log(log: NewLog): void {
    if (this.#finished) return
    this.#gathered.logs.push(log)
    this.#flushWithin(EVENT_RIDE_MS)
  }

  /** The last value wins. */
  progress(progress: Progress, event: EventInput): void {
    if (this.#finished) return
    const { events } = this.#gathered
    this.#gathered.progress = progress
    // One after another with nothing in between are one.
    if (events.at(-1)?.type === event.type) events.pop()
    if (this.#params.engine.plugins.recordsEvent(event.type)) events.push(event)
    this.#flushWithin(PROGRESS_RIDE_MS)
  }

  #commitNow(event: EventInput | null, add: (gathered: Gathered) => void): Promise<StepAnswer> {
    // What an abandoned body hands in after the end of its execution comes too late.
    if (this.#finished) return Promise.resolve({ kept: false })
    add(this.#gathered)
    if (event !== null) this.#gathered.events.push(event)
    return new Promise((resolve) => {
      this.#gathered.waiting.push({ event, resolve })
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
    if (this.#inFlight || isNothing(this.#gathered)) return
    const sent = this.#gathered
    const sentAt = this.#params.engine.environment.clock.monotonic()
    this.#gathered = nothing()
    this.#inFlight = true
    this.#params.line.send(this.#toCommit(sent)).then(
      (answer) => this.#onAnswer(sent, answer, sentAt),
      (error: unknown) => this.#onRejected(sent, error),
    )
  }

  #toCommit(gathered: Gathered): RunCommit {
    const { steps, logs, events, progress, currentStepIndex, outcome } = gathered
    this.#commitNo += 1
    return {
      lease: this.#params.lease,
      commitNo: this.#commitNo,
      leaseMs: this.#params.engine.options.leaseMs,
      currentStepIndex,
      progress,
      steps,
      logs,
      events: events.map(toTemplate),
      consumedSignals: [],
      outcome,
    }
  }

  #onAnswer(sent: Gathered, answer: CommitAnswer, sentAt: number): void {
    this.#inFlight = false
    this.#params.onAnswer(answer, sentAt)
    settle(sent, answer)
    if (this.#gathered.waiting.length > 0) this.#flush()
    else if (!isNothing(this.#gathered)) this.#flushWithin(EVENT_RIDE_MS)
  }

  #onRejected(sent: Gathered, error: unknown): void {
    this.#finished = true
    this.#params.onRejected(error)
    settle(sent, { kept: false })
    settle(this.#gathered, { kept: false })
  }
}

/** The numbers of a commit's events follow from the last one it took. */
function settle(sent: Gathered, answer: CommitAnswer): void {
  const firstSeq = answer.kept ? answer.seq - sent.events.length - countLast(sent.outcome, answer.status) + 1 : 0
  for (const { event, resolve } of sent.waiting) {
    const position = event === null ? -1 : sent.events.indexOf(event)
    resolve(answer.kept && position >= 0 ? { ...answer, eventSeq: firstSeq + position } : answer)
  }
}

function countLast(outcome: Outcome | null, status: RunStatus): number {
  if (outcome === null) return 0
  return status === 'cancelled' ? outcome.eventsIfCancelled.length : outcome.events.length
}

function nothing(): Gathered {
  return { steps: [], logs: [], events: [], waiting: [], progress: null, currentStepIndex: null, outcome: null }
}

function isNothing({ waiting, logs, events, progress }: Gathered): boolean {
  return waiting.length + logs.length + events.length === 0 && progress === null
}
