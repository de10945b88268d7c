import {
  type CommitAnswer,
  isSuspect,
  type Lease,
  type Outcome,
  type RenewAnswer,
  type RunCommit,
  type RunRecord,
} from '../port'
import { createInterruption, createLogs, type Interruption } from '../step'
import { type Engine, isWatched, type OpenExecution } from '../engine'
import { decodeValue, type InterruptionReason, isRejection, pause } from '../base'
import { type Done, leaseOf, msBefore, OF_THE_JOB, OVER, tellLost } from './execution'
import type { HeldLease, LeaseKeeper } from './lease'
import { outcomeOf, type Settled, type AnnouncedOutcome } from './outcome'
import { type CommitLine, PlainEnds } from '../commit'
import { executeOwn, type OwnExecution, type OwnExecutionParams } from './own-execution'
import { type JobDefinition, type PlainAttempt, type PlainBody, refuseSpent, type StepLog, triesOf } from '../job'

/** Workers execute the job as its body says, without all that a job with steps needs. */
export function asPlain(job: JobDefinition, body: PlainBody): JobDefinition {
  return executeOwn(job, (params) => new PlainExecution(params, body))
}

/** Those of a worker, which has one line. */
const endsOf = new WeakMap<CommitLine, PlainEnds>()

const NONE: readonly never[] = Object.freeze([])

/** Shared by all that succeed and of which no history is kept. */
const SUCCESS: Outcome = Object.freeze({ kind: 'complete', output: null, events: NONE, eventsIfCancelled: NONE })

const RETURNED: Settled = Object.freeze({ kind: 'returned', output: null })
const WAITS: Done = Object.freeze({ isDueLater: true, restMs: 0 })
const NO_STEPS: ReadonlyMap<unknown, string> = new Map()

const NO_WRITER = Object.freeze({ log() {} })

const OPEN = Object.freeze({ isOver: false })
const CLOSED = Object.freeze({ isOver: true })

/**
 * One run of a plain job. There are very many of them and most last for a moment, so it is one object, which stands for all
 * that an execution with steps has objects for, and makes what few of them need when they need it.
 */
class PlainExecution implements OwnExecution, PlainAttempt, HeldLease {
  readonly engine: Engine
  readonly run: RunRecord
  readonly lease: Lease
  readonly claimedAt: number
  readonly begunAt: number
  /** As code of a job that is going on, of which calls that wait for the worker ask whose they are. */
  readonly stepName = null
  calls: { readonly isOver: boolean } = OPEN
  readonly #body: PlainBody
  readonly #ends: PlainEnds
  readonly #leases: LeaseKeeper
  readonly #onDone: OwnExecutionParams['onDone']
  #interruption: Interruption | null = null
  #announced: AnnouncedOutcome | null = null
  #outcome: Outcome = SUCCESS
  #isSettled = false
  #isLost = false
  #isRefused = false
  #isOver = false
  #whenOver: ((done: Done) => void)[] | null = null

  constructor({ engine, run, claimedAt, line, leases, onDone }: OwnExecutionParams, body: PlainBody) {
    this.engine = engine
    this.run = run
    this.lease = leaseOf(run)
    this.claimedAt = claimedAt
    this.begunAt = engine.environment.clock.monotonic()
    this.#body = body
    const ends = endsOf.get(line) ?? new PlainEnds(engine, line)
    endsOf.set(line, ends)
    this.#ends = ends
    this.#leases = leases
    this.#onDone = onDone
  }

  get runId(): string {
    return this.run.id
  }

  get jobName(): string {
    return this.run.jobName
  }

  get leaseEpoch(): number {
    return this.run.leaseEpoch
  }

  get tries(): number {
    return triesOf(this.run, true)
  }

  get signal(): AbortSignal {
    return this.#interrupted().signal
  }

  get log(): StepLog {
    const { engine, run } = this
    // Without a history nothing of a line is stored.
    return createLogs({ engine, run, writer: NO_WRITER })(null)
  }

  get scope(): OpenExecution {
    return this
  }

  get done(): Promise<Done> {
    if (this.#isOver) return Promise.resolve(OVER)
    return new Promise((resolve) => {
      this.#whenOver ??= []
      this.#whenOver.push(resolve)
    })
  }

  isSuspect(): boolean {
    return isSuspect(this.run)
  }

  interrupt(reason: InterruptionReason, graceMs?: number): void {
    if (!this.#isSettled) this.#interrupted().interrupt(reason, graceMs)
  }

  begin(): void {
    const { engine, run } = this
    this.#leases.enter(this, this.begunAt)
    const { id: runId, jobName } = run
    if (isWatched(engine, 'run:start')) {
      engine.events.emit({ type: 'run:start', runId, jobName, payload: decodeValue(run.payload) })
    } else engine.events.pass('run:start', runId)
    if (this.#reason() !== null) this.#settle({ kind: 'abandoned' })
    else this.#call()
  }

  #call(): void {
    try {
      const { jobs, options } = this.engine
      refuseSpent(jobs.get(this.run.jobName)?.retry ?? null, this.run, options.maxCrashes)
      const payload = decodeValue(this.run.payload)
      const returned = this.engine.bodyScope.run(this, () => this.#body.begin(this, payload))
      if (!isThenable(returned)) this.#settle(RETURNED)
      else {
        returned.then(
          () => this.#settle(RETURNED),
          (error: unknown) => this.#settle(this.#thrown(error)),
        )
      }
    } catch (error) {
      this.#settle(this.#thrown(error))
    }
  }

  #thrown(error: unknown): Settled {
    return this.#interruption?.isCause(error) === true ? { kind: 'abandoned' } : { kind: 'threw', error }
  }

  #interrupted(): Interruption {
    if (this.#interruption !== null) return this.#interruption
    const interruption = createInterruption(this.engine.environment.clock, this.run.id)
    this.#interruption = interruption
    if (this.#isSettled) interruption.end()
    else interruption.onInterrupt(() => void this.#abandon(interruption))
    return interruption
  }

  #reason(): InterruptionReason | null {
    return this.#interruption?.reason() ?? null
  }

  /** A function that does not heed its signal is left where it is. */
  async #abandon(interruption: Interruption): Promise<void> {
    const { clock } = this.engine.environment
    // Who gives its signal up at once still says what it came to.
    if (interruption.reason() === 'shutdown') await pause(clock, 0)
    else await interruption.expired
    this.#settle({ kind: 'abandoned' })
  }

  #settle(settled: Settled): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.calls = CLOSED
    const reason = this.#reason()
    if (this.#isLost) this.#letGo(OVER)
    else if (reason === 'lease-lost') {
      // Given back it would not count, and a storage that is away again and again would have it begun for ever.
      this.#tellLost()
      this.#letGo(OVER)
    } else {
      this.#interruption?.end()
      const { events, plugins } = this.engine
      const isHeard = events.hears('run:complete') || plugins.recordsEvents()
      if (settled === RETURNED && reason === null && !isHeard) this.#send(SUCCESS)
      else this.#end(settled, reason)
    }
  }

  #end(settled: Settled, reason: InterruptionReason | null): void {
    this.#announced = this.#outcomeOf(settled, reason)
    this.#send(this.#announced.outcome)
  }

  #outcomeOf(settled: Settled, reason: InterruptionReason | null): AnnouncedOutcome {
    const { engine, run } = this
    const heldMs = engine.environment.clock.monotonic() - this.begunAt
    const durationMs = Math.round(msBefore(run) + heldMs)
    return outcomeOf({ engine, run, settled, reason, stepOfError: NO_STEPS, durationMs, heldMs })
  }

  #send(outcome: Outcome): void {
    this.#outcome = outcome
    this.#ends.add(this)
  }

  /** For who sends it. */
  get commit(): RunCommit {
    return {
      lease: this.lease,
      commitNo: 1,
      leaseMs: this.engine.options.leaseMs,
      hasProgressed: false,
      currentStepIndex: null,
      progress: null,
      steps: NONE,
      children: NONE,
      logs: NONE,
      events: NONE,
      consumedSignals: NONE,
      outcome: this.#outcome,
    }
  }

  answer(answer: CommitAnswer): void {
    if (!answer.kept) {
      this.#tellLost()
      this.#letGo(OVER)
      return
    }
    const { engine, run } = this
    if (answer.status === 'completed') this.#body.succeeded(run.id)
    // Somebody may have begun to listen meanwhile.
    if (this.#announced === null && engine.events.hears('run:complete'))
      this.#announced = this.#outcomeOf(RETURNED, null)
    if (this.#announced !== null) this.#announced.announce(answer)
    else if (answer.status === 'completed') engine.events.pass('run:complete', run.id)
    else engine.events.emit({ type: 'run:cancel', runId: run.id, jobName: run.jobName, requested: false })
    this.#letGo(this.#outcome.kind === 'retryLater' ? WAITS : OVER)
  }

  fail(error: unknown): void {
    if (!isRejection(error) || this.#isRefused || !OF_THE_JOB.has(this.#outcome.kind)) {
      // The lease runs out and the run is recovered, as after a crash.
      this.#body.givenUp(this.run.id)
      this.#letGo(OVER)
      return
    }
    // What the job threw cannot be stored: that is what it fails with.
    this.#isRefused = true
    this.#end({ kind: 'threw', error }, null)
  }

  onAnswer(answer: RenewAnswer): void {
    // Once the last commit is on its way, only its own answer tells: it may be what a renewal finds nothing after.
    if (!answer.kept) {
      if (!this.#isSettled) this.#lose()
    } else if (answer.cancelRequested) this.interrupt('cancelled')
  }

  onOutOfTouch(): void {
    this.interrupt('lease-lost')
  }

  #lose(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#tellLost()
    this.interrupt('lease-lost')
  }

  #tellLost(): void {
    tellLost(this.engine, this.run)
  }

  #letGo(done: Done): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#interruption?.dispose()
    this.#leases.drop(this)
    this.#onDone(this, done)
    for (const resolve of this.#whenOver ?? NONE) resolve(done)
  }
}

function isThenable(returned: unknown): returned is PromiseLike<unknown> {
  return typeof (returned as PromiseLike<unknown> | null | undefined)?.then === 'function'
}
