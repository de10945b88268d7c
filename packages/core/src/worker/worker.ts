import {
  type ClaimLine,
  type Engine,
  reportTrouble,
  requireStopOptions,
  type StopOptions,
  troubleDelayMs,
  type WorkerState,
} from '../engine'
import { AssignedRuns, type LiveSettings } from './assigned'
import { Claimer } from './claim'
import { CommitLine } from '../commit'
import {
  type Budget,
  DRAIN_OPTIONS,
  type DrainOptions,
  type DrainResult,
  knownDue,
  nextWakeAt,
  restLeftMs,
  Turns,
} from './until-idle'
import { atMost, refuseBadDuration, refuseUnknownOptions } from '../base'
import { type Done, type Execution, startExecution } from './execution'
import { Housekeeping } from './housekeeping'
import { GRACE_MS, Rests } from '../step'
import { LeaseKeeper } from './lease'
import { ownExecutionOf } from './own-execution'
import type { RunRecord } from '../port'
import { RunsInHand } from './in-hand'
import { recoverRuns } from './recovery'

/** Fills its slots with runs, one claim at a time, and keeps what it holds alive. */
export class Worker {
  readonly #engine: Engine
  readonly #line: CommitLine
  readonly #leases
  readonly #claimer: Claimer
  readonly #assigned: AssignedRuns
  readonly #housekeeping: Housekeeping
  readonly #inHand = new RunsInHand()
  readonly #turns: Turns
  #state: WorkerState = 'stopped'
  /** A draining worker runs what is due and does not wait for more. */
  #polls = false
  #filling: Promise<void> | null = null
  #wokenMeanwhile = false
  #expectsLater = false
  /** When there is more to claim than at the last look, by the monotonic clock: then a rate lets a job begin more. */
  #opensAt = Number.POSITIVE_INFINITY
  readonly #rests: Rests
  #claimFailures = 0
  #begun = 0
  #callOffPoll: () => void = () => {}
  #stopping: Promise<void> | null = null
  /** What was left behind by others was looked at, since the worker runs. */
  #ready: Promise<void> = Promise.resolve()
  /** Calls of `drain` in progress. */
  #drains = 0
  /** start() was called while stopping, and stop() not again since. */
  #startsAgain = false
  /** The call of finish() that counts, until start() or stop() says otherwise. */
  #finish: object | null = null

  constructor(engine: Engine, settings: LiveSettings) {
    this.#engine = engine
    this.#line = new CommitLine(engine)
    this.#rests = new Rests(engine.environment.clock)
    this.#turns = new Turns(engine.environment.clock)
    this.#leases = new LeaseKeeper(engine)
    this.#claimer = new Claimer(engine)
    this.#assigned = new AssignedRuns(engine, this.#claimer, settings)
    const [leases, assigned] = [this.#leases, this.#assigned]
    this.#housekeeping = new Housekeeping({ engine, leases, assigned, onRunnable: () => this.wake() })
  }

  get state(): WorkerState {
    return this.#state
  }

  activeRuns(): readonly string[] {
    return this.#inHand.all().map((execution) => execution.runId)
  }

  start(): void {
    if (this.#stopping !== null) {
      this.#startsAgain = true
      return
    }
    this.#polls = true
    if (this.#state === 'running') {
      // Who asks may know of a run that starts later.
      this.wake(true)
      return
    }
    this.#state = 'running'
    this.#finish = null
    this.#ready = this.#housekeeping.begin()
    void this.#ready.then(() => this.wake())
  }

  async stop(options: StopOptions): Promise<void> {
    const { timeout } = requireStopOptions(options)
    this.#startsAgain = false
    this.#finish = null
    if (this.#state === 'stopped') return
    this.#stopping ??= this.#stopOnce().finally(() => {
      this.#stopping = null
      if (this.#startsAgain) this.start()
    })
    if (timeout === undefined) return this.#stopping
    const { clock } = this.#engine.environment
    const callOff = clock.schedule(timeout, () => this.#inHand.interruptAll(0))
    // A storage that does not answer must not keep the process: its leases run out by themselves.
    await atMost(clock, timeout + GRACE_MS, this.#stopping).finally(callOff)
    if (this.#stopping !== null) this.#housekeeping.end()
  }

  /** Takes no more runs until start(). Resolves when those in hand have ended; the worker has stopped then, if it was not started. */
  async finish(): Promise<void> {
    if (this.#state === 'running') {
      this.#finish = {}
      this.#state = 'stopping'
      this.#polls = false
      this.#callOffPoll()
    }
    const finish = this.#finish
    await this.#allDone(() => this.#finish === finish)
    if (finish !== null && this.#finish === finish) await this.stop({})
    else await this.#stopping
  }

  async #stopOnce(): Promise<void> {
    this.#state = 'stopping'
    this.#polls = false
    this.#callOffPoll()
    await this.#assigned.declineAll()
    await this.#giveBackUnanswered()
    this.#housekeeping.end()
    this.#state = 'stopped'
  }

  /** Looks for runs now; `startsLater`: and again as soon as one that starts later is due. */
  wake(startsLater = false): void {
    if (startsLater) this.#expectsLater = true
    if (this.#state !== 'running') return
    if (this.#filling === null) void this.#fill()
    else this.#wokenMeanwhile = true
  }

  /** As `wake`, and renews or gives up leases at once. */
  lookNow(): void {
    this.#housekeeping.lookNow()
    this.wake()
  }

  async recoverFrom(deadWorkerId: string, isCrash: boolean): Promise<readonly RunRecord[]> {
    const runs = await recoverRuns({ engine: this.#engine, deadWorkerId, isCrash, held: this.#leases.heldRunIds() })
    if (runs.length > 0) this.wake()
    return runs
  }

  /** Asks the storage at once what became of a run that it holds: a signal has come, or it is to be cancelled. */
  lookAt(runId: string): void {
    this.#leases.renewOf(runId)
  }

  holds(runId: string): boolean {
    return this.#inHand.has(runId)
  }

  /** `asked` is the run as the command left it. */
  cancelRun(asked: Pick<RunRecord, 'id' | 'leaseEpoch'>): void {
    this.#inHand.cancel(asked)
  }

  /** Nothing is sent to the storage any more. */
  close(): void {
    this.#line.close()
  }

  /** Runs what is due, and what that leads to, then returns. Calls that overlap share the worker. */
  async drain(options: DrainOptions): Promise<DrainResult> {
    refuseUnknownOptions('runUntilIdle()', options, DRAIN_OPTIONS)
    const { budgetMs, signal } = options
    refuseBadDuration('budgetMs', budgetMs)
    const begunBefore = this.#begun
    const wasStarted = this.#polls
    await this.#enterDrain()
    const budget: Budget = { isOver: signal?.aborted ?? false, remaining: [] }
    const end = () => {
      budget.isOver = true
      this.#turns.take()
      // What a started worker, or another call, goes on with is not this call's to end.
      if (wasStarted || this.#drains > 1) return
      budget.remaining = this.#inHand.all()
      if (!this.#polls) this.#state = 'stopping'
      this.#inHand.interruptAll(GRACE_MS)
    }
    const callOffBudget = budgetMs === undefined ? () => {} : this.#engine.environment.clock.schedule(budgetMs, end)
    signal?.addEventListener('abort', end, { once: true })
    try {
      await this.#runWhileDue(budget)
      // Not for what a start() has begun meanwhile.
      await Promise.all(budget.remaining.map((execution) => execution.done))
    } finally {
      await this.#leaveDrain()
      callOffBudget()
      signal?.removeEventListener('abort', end)
    }
    // Whoever comes again at a time would come for ever, and hear nothing.
    if (this.#housekeeping.refusal !== null) throw this.#housekeeping.refusal
    return {
      ran: this.#begun - begunBefore,
      nextWakeAt: await nextWakeAt(this.#engine, { isOver: budget.isOver, opensAt: this.#opensAt }),
    }
  }

  async #enterDrain(): Promise<void> {
    this.#drains += 1
    // The budget of the call before is over: what it gives back is due again.
    if (this.#state === 'stopping' && this.#stopping === null) this.#state = 'running'
    if (this.#state === 'stopped') {
      this.#state = 'running'
      this.#ready = this.#housekeeping.begin()
    }
    await this.#ready
  }

  /** The last one stops the worker, unless somebody has called start() meanwhile. */
  async #leaveDrain(): Promise<void> {
    if (this.#drains === 1 && !this.#polls) await this.#giveBackUnanswered()
    this.#drains -= 1
    if (this.#drains > 0 || this.#polls || this.#stopping !== null) return
    this.#housekeeping.end()
    this.#state = 'stopped'
  }

  async #runWhileDue(budget: Budget): Promise<void> {
    // A look that is under way may have missed what is due now.
    if (this.#filling !== null) this.wake()
    while (!budget.isOver) {
      await this.#fill()
      while (this.#filling !== null) await this.#filling
      const restMs = this.#inHand.size === 0 ? await restLeftMs(this.#engine, this.#rests.leftMs()) : null
      if (this.#inHand.size === 0 && restMs === null) return
      if (!budget.isOver) await this.#turns.next(restMs)
    }
  }

  #fill(): Promise<void> {
    this.#callOffPoll()
    this.#filling ??= this.#engine.bodyScope
      .outside(() => this.#fillSlots())
      .finally(() => {
        this.#filling = null
        if (!this.#wokenMeanwhile) return
        this.#wokenMeanwhile = false
        this.wake()
      })
    return this.#filling
  }

  async #fillSlots(): Promise<void> {
    this.#opensAt = Number.POSITIVE_INFINITY
    if (this.#engine.admission.hasPlaced() && !(await this.#startAssigned())) return
    for (const line of this.#engine.admission.lines()) if (!(await this.#fillFrom(line))) return
    await this.#planNextPoll()
  }

  /** What a leader has assigned to this worker comes before what it may claim. Answers whether there was no trouble. */
  async #startAssigned(): Promise<boolean> {
    await this.#engine.breathe()
    if (this.#state !== 'running' || !this.#housekeeping.mayClaim) return true
    try {
      const free = Math.max(0, this.#engine.options.concurrency - this.#inHand.size)
      const { runs, sentAt } = await this.#assigned.start({ free, holdsSuspect: this.#inHand.hasSuspect() })
      for (const run of runs) this.#begin(run, sentAt)
      return true
    } catch (error) {
      this.#noteTrouble(error)
      return false
    }
  }

  #noteTrouble(error: unknown): void {
    this.#claimFailures += 1
    this.#housekeeping.noteOutage()
    reportTrouble(this.#engine, error, 'claim')
    this.#pollIn(troubleDelayMs(this.#engine, this.#claimFailures))
  }

  /** Answers whether others may be asked for now: there is room left, and no trouble. */
  async #fillFrom(line: ClaimLine): Promise<boolean> {
    let opensAt = Number.POSITIVE_INFINITY
    for (;;) {
      await this.#engine.breathe()
      const free = this.#engine.options.concurrency - this.#inHand.size
      // The next run that ends wakes it.
      if (free <= 0) return false
      if (this.#state !== 'running' || !this.#housekeeping.mayClaim) break
      try {
        const { admission } = this.#engine
        const admit = () => admission.next(free, line)
        opensAt = admit().opensAt
        const wanted = { admit, free, holdsSuspect: this.#inHand.hasSuspect() }
        const { runs, sentAt, isAll, opensInMs } = await this.#claimer.claim(wanted)
        this.#claimFailures = 0
        for (const run of runs) this.#begin(run, sentAt)
        if (line !== null && opensInMs > 0) opensAt = admission.opensIn(line, opensInMs)
        if (isAll) break
      } catch (error) {
        this.#noteTrouble(error)
        return false
      }
    }
    this.#opensAt = Math.min(this.#opensAt, opensAt)
    return true
  }

  /** Polling is the fall-back: what this process knows to come due earlier is waited for exactly. */
  async #planNextPoll(): Promise<void> {
    const { options, environment } = this.#engine
    const pollMs = options.pollingIntervalMs * (0.9 + environment.random() * 0.2)
    const dueMs = this.#expectsLater && this.#state === 'running' ? await this.#knownDueInMs() : null
    const opensInMs = Math.ceil(this.#opensAt - environment.clock.monotonic())
    this.#pollIn(Math.min(pollMs, dueMs ?? pollMs, Math.max(0, opensInMs), this.#rests.leftMs() ?? pollMs))
  }

  async #knownDueInMs(): Promise<number | null> {
    const { dueMs, expectsLater = this.#expectsLater } = await knownDue(this.#engine)
    this.#expectsLater = expectsLater
    return dueMs
  }

  #pollIn(ms: number): void {
    this.#callOffPoll()
    if (!this.#polls || this.#state !== 'running') return
    this.#callOffPoll = this.#engine.environment.clock.schedule(ms, () => this.wake())
  }

  #begin(run: RunRecord, claimedAt: number): void {
    const [engine, leases] = [this.#engine, this.#leases]
    const createOwn = ownExecutionOf(engine.jobs.get(run.jobName))
    if (createOwn !== undefined) {
      const own = createOwn({ engine, line: this.#line, leases, run, claimedAt, onDone: this.#onDone })
      this.#note(own)
      own.begin()
      return
    }
    // The next one may be waiting for its turn.
    const onCleared = () => this.wake()
    const execution = startExecution({ engine, line: this.#line, leases, run, claimedAt, onCleared })
    this.#note(execution)
    void execution.done.then((done) => this.#onDone(execution, done))
  }

  #note(execution: Execution): void {
    this.#inHand.add(execution)
    this.#engine.admission.begin(execution.jobName)
    this.#begun += 1
    if (this.#state !== 'running') execution.interrupt('shutdown', 0)
  }

  readonly #onDone = (execution: Execution, { isDueLater, restMs }: Done) => {
    this.#rests.note(restMs)
    this.#inHand.remove(execution)
    this.#engine.admission.end(execution.jobName)
    this.wake(isDueLater)
    this.#turns.take()
  }

  /** What a claim took whose answer was lost is nobody's otherwise, until its lease runs out. */
  async #giveBackUnanswered(): Promise<void> {
    await this.#allDone()
    try {
      const { runs, sentAt } = await this.#claimer.findUnanswered()
      for (const run of runs) this.#begin(run, sentAt)
    } catch (error) {
      reportTrouble(this.#engine, error, 'claim')
    }
    await this.#assigned.declineAll()
    await this.#allDone()
  }

  async #allDone(isAwaited = () => true): Promise<void> {
    while (isAwaited() && (this.#filling !== null || this.#inHand.size > 0)) {
      await this.#filling
      await this.#inHand.ended()
    }
  }
}
