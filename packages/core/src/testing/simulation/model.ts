import type {
  ClaimParams,
  CommandAnswer,
  CommitAnswer,
  EnqueueAnswer,
  Lease,
  NewRun,
  Outcome,
  PurgeParams,
  RecoverParams,
  RenewAnswer,
  RunCommand,
  RunCommit,
  RunRecord,
} from '../../storage'
import { type ModelRun, newModelRun, typesOf } from './model-run'
import { ENDED, claimableAt, freeSlots, hasConflict, holderOfKey, purgeable, whyNot } from './model-queries'
import { must, mustEqual, Violation } from './violation'

const ENDS = { complete: 'completed', fail: 'failed', timeOut: 'timed_out', cancelled: 'cancelled' } as const

/**
 * What a storage must have done, worked out a second time and in the plainest way from the words of the port: each
 * method takes what was asked and what was answered, refuses a wrong answer, and brings the model to where the storage
 * must be now. It shares no code with any storage.
 */
export class Model {
  readonly runs = new Map<string, ModelRun>()
  /**
   * Runs that are no more, and how often. A trigger that was repeated for want of an answer may make a run anew that
   * was removed meanwhile.
   */
  readonly removed = new Map<string, number>()
  /** Runs changed since somebody last compared: each must show a higher version. */
  readonly touched = new Set<ModelRun>()
  readonly #now: () => number
  /** A clock may be set back; what was due before may count as due still. */
  #latest = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** The storage was asked something: what is due now has been due, even when its clock is set back. */
  look(): void {
    this.#latest = Math.max(this.#latest, this.#now())
  }

  mayRefuse(runs: readonly NewRun[]): boolean {
    return hasConflict(this.runs, runs)
  }

  enqueued(runs: readonly NewRun[], answers: readonly EnqueueAnswer[]): void {
    must(!this.mayRefuse(runs), () => 'a run with a taken key and another payload was enqueued with onConflict: reject')
    mustEqual(answers.length, runs.length, 'number of answers to enqueue')
    runs.forEach((wanted, index) => {
      const holder = this.runs.has(wanted.id) ? undefined : holderOfKey(this.runs, wanted)
      const expected = [holder?.wanted.id ?? wanted.id, holder === undefined]
      const answer = answers[index]
      mustEqual([answer?.run.id, answer?.created], expected, `answer to enqueue ${wanted.id}`)
      if (holder === undefined && !this.runs.has(wanted.id)) this.#add(newModelRun(wanted, this.#now()))
    })
  }

  claimable({ jobs }: Pick<ClaimParams, 'jobs'>, by = this.#now()): ModelRun[] {
    return claimableAt(this.runs, jobs, by)
  }

  claimed(params: ClaimParams, answer: readonly RunRecord[]): void {
    this.look()
    if (params.repeat === true) {
      const holding = [...this.runs.values()].filter((run) => run.owner !== null && run.token === params.claimToken)
      mustEqual(
        answer.map((run) => run.id).sort(),
        holding.map((run) => run.wanted.id).sort(),
        'runs of a repeated claim',
      )
      return
    }
    must(answer.length <= params.limit, () => `a claim for ${params.limit} runs took ${answer.length}`)
    for (const record of answer) this.#claimOne(params, record)
    const left = answer.length < params.limit ? this.claimable(params)[0] : undefined
    must(left === undefined, () => `run ${left?.wanted.id} was due and not claimed`)
  }

  #claimOne(params: ClaimParams, record: RunRecord): void {
    const run = this.runs.get(record.id)
    if (run === undefined || !this.claimable(params, this.#latest).includes(run)) {
      throw new Violation(
        `run ${record.id} was claimed: ${run === undefined ? 'unknown' : whyNot(run, params, this.#now())}`,
      )
    }
    const first = this.claimable(params)[0]
    if (this.#latest === this.#now()) mustEqual(record.id, first?.wanted.id, 'the run that is claimed first')
    if (run.wanted.concurrencyKey !== null && run.slot === null) {
      const { concurrencySlot } = record
      if (concurrencySlot === null || !freeSlots(this.runs, run).includes(concurrencySlot)) {
        throw new Violation(`run ${record.id} took slot ${concurrencySlot}, which it may not`)
      }
      run.slot = concurrencySlot
    }
    this.touched.add(run)
    run.status = 'running'
    run.epoch += 1
    run.token = params.claimToken
    run.owner = params.workerId
    run.claimedAt = this.#now()
    run.leaseUntil = run.claimedAt + params.leaseMs
    run.commitNo = 0
    if (run.wanted.timeoutMs !== null) run.deadlineAt ??= this.#now() + run.wanted.timeoutMs
    run.events.push(...typesOf(params.events))
  }

  holds(lease: Lease): ModelRun | null {
    const run = this.runs.get(lease.runId)
    const isHeld = run?.status === 'running' && run.epoch === lease.epoch && run.token === lease.token
    return isHeld && lease.leaderEpoch === null ? run : null
  }

  committed(commits: readonly RunCommit[], answers: readonly CommitAnswer[]): void {
    mustEqual(answers.length, commits.length, 'number of answers to commit')
    commits.forEach((commit, index) => {
      const { lease, commitNo } = commit
      const holder = this.holds(lease)
      const what = `answer to commit ${commitNo} of ${lease.runId} under epoch ${lease.epoch}`
      if (holder !== null && holder.commitNo === commitNo - 1) this.#apply(holder, commit)
      else {
        const run = this.runs.get(lease.runId)
        const isAgain = run?.epoch === lease.epoch && run.token === lease.token && run.commitNo === commitNo
        if (!isAgain) {
          mustEqual(answers[index], { kept: false }, what)
          return
        }
      }
      const run = this.runs.get(lease.runId)
      const expected = [true, run?.status, run?.events.length, run?.cancelAsked]
      const answer = answers[index]
      const found = answer?.kept === true ? [true, answer.status, answer.seq, answer.cancelRequested] : [answer?.kept]
      mustEqual(found, expected, what)
    })
  }

  #apply(
    run: ModelRun,
    { commitNo, steps, logs, events, outcome, progress, currentStepIndex, leaseMs }: RunCommit,
  ): void {
    this.touched.add(run)
    for (const step of steps) {
      const live = run.liveSteps.get(step.name)
      must(live === undefined || live.id === step.id, () => `step ${step.name} of ${run.wanted.id} has two live rows`)
      must(
        live?.status !== 'completed',
        () => `step ${step.name} of ${run.wanted.id} was written again after it completed`,
      )
      if (step.status === 'failed') {
        run.liveSteps.delete(step.name)
        run.failedSteps.push(step)
      } else run.liveSteps.set(step.name, step)
      if (step.status !== 'started') run.crashes = 0
    }
    run.commitNo = commitNo
    run.stepIndex = currentStepIndex ?? run.stepIndex
    run.progress = progress === null ? run.progress : JSON.stringify(progress)
    run.logs += logs.length
    run.events.push(...typesOf(events))
    if (outcome === null) run.leaseUntil = this.#now() + leaseMs
    else this.#leave(run, outcome)
  }

  #leave(run: ModelRun, outcome: Outcome): void {
    if (run.cancelAsked) this.#end(run, 'cancelled', outcome.eventsIfCancelled)
    else this.#leaveAs(run, outcome)
  }

  #leaveAs(run: ModelRun, outcome: Outcome): void {
    switch (outcome.kind) {
      case 'complete':
        run.output = outcome.output
        run.error = null
        this.#end(run, ENDS[outcome.kind], outcome.events)
        break
      case 'fail':
      case 'timeOut':
        run.error = outcome.error
        this.#end(run, ENDS[outcome.kind], outcome.events)
        break
      case 'cancelled':
        throw new Violation(`run ${run.wanted.id} was cancelled by its worker, and nobody had asked for it`)
      case 'release':
        this.#wait(run, run.createdAt, outcome.events)
        break
      default:
        throw new Violation(`outcome ${outcome.kind} is not part of the model`)
    }
  }

  #add(run: ModelRun): void {
    this.runs.set(run.wanted.id, run)
    this.touched.add(run)
  }

  #end(run: ModelRun, status: ModelRun['status'], events: RunCommit['events']): void {
    this.touched.add(run)
    Object.assign(run, { status, slot: null, owner: null, leaseUntil: null, finishedAt: this.#now() })
    if (status === 'cancelled') run.output = null
    run.events.push(...typesOf(events))
  }

  #wait(run: ModelRun, availableAt: number, events: RunCommit['events']): void {
    this.touched.add(run)
    Object.assign(run, { status: 'pending', owner: null, leaseUntil: null, availableAt })
    if (!run.wanted.holdKeyWhileWaiting) run.slot = null
    run.events.push(...typesOf(events))
  }

  renewed(leases: readonly Lease[], leaseMs: number, answers: readonly RenewAnswer[]): void {
    leases.forEach((lease, index) => {
      const run = this.holds(lease)
      if (run !== null) this.touched.add(Object.assign(run, { leaseUntil: this.#now() + leaseMs }))
      const answer = answers[index]
      const found = [answer?.kept, answer?.kept === true && answer.cancelRequested]
      mustEqual(found, [run !== null, run?.cancelAsked ?? false], `answer to renewal of ${lease.runId}`)
    })
  }

  abandoned({ deadWorkerId, held }: RecoverParams): ModelRun[] {
    return [...this.runs.values()].filter(
      (run) =>
        run.status === 'running' &&
        !held.includes(run.wanted.id) &&
        (deadWorkerId === null ? (run.leaseUntil ?? 0) <= this.#now() : run.owner === deadWorkerId),
    )
  }

  recovered(params: RecoverParams, answer: readonly RunRecord[]): void {
    const expected = this.abandoned(params)
    const found = answer.map((record) => record.id).sort()
    must(expected.length <= params.limit, () => 'more runs were abandoned than the model compares')
    mustEqual(found, expected.map((run) => run.wanted.id).sort(), `runs recovered for ${params.deadWorkerId}`)
    for (const run of expected) {
      run.epoch += 1
      run.token = ''
      run.crashes += 1
      const delayMs = run.crashes < 2 ? 0 : Math.min(1000 * 2 ** (run.crashes - 1), 60_000)
      if (run.cancelAsked) this.#end(run, 'cancelled', params.events.cancelled)
      else if (run.crashes >= params.maxCrashes) {
        run.error = params.crashLimit.error
        this.#end(run, 'failed', params.events.failed)
      } else this.#wait(run, delayMs === 0 ? run.createdAt : this.#now() + delayMs, params.events.pending)
    }
  }

  /** Whether the run is in a state for it. */
  allows({ kind, runId }: RunCommand): boolean {
    const status = this.runs.get(runId)?.status ?? ''
    if (kind === 'cancel') return status === 'pending' || status === 'running'
    return kind === 'retry' ? ENDED.includes(status) && status !== 'completed' : ENDED.includes(status)
  }

  commanded(command: RunCommand, answer: CommandAnswer): void {
    const run = this.runs.get(command.runId)
    const expected = run === undefined ? 'not-found' : this.allows(command) ? true : 'wrong-state'
    mustEqual(
      answer.applied || answer.reason,
      expected,
      `answer to ${command.kind} of ${command.runId} (${run?.status})`,
    )
    if (run === undefined || expected !== true) return
    if (command.kind === 'cancel') {
      this.touched.add(Object.assign(run, { cancelAsked: true }))
      if (run.status === 'running') run.events.push(...typesOf(command.events.requested))
      else this.#end(run, 'cancelled', command.events.cancelled)
    } else if (command.kind === 'remove') this.#remove(run)
    else if (command.kind === 'retry') this.#retry(run, command.events)
    else throw new Violation(`command ${command.kind} is not part of the model`)
  }

  #retry(run: ModelRun, events: RunCommit['events']): void {
    Object.assign(run, {
      attemptBase: run.attempt,
      attempt: run.attempt + 1,
      epoch: run.epoch + 1,
      token: '',
      crashes: 0,
    })
    Object.assign(run, { output: null, error: null, deadlineAt: null, finishedAt: null, cancelAsked: false })
    this.#wait(run, run.createdAt, events)
  }

  purged(params: PurgeParams, count: number): void {
    const old = purgeable(this.runs, params, this.#now())
    mustEqual(count, Math.min(old.length, params.limit), 'number of purged runs')
    for (const run of old.slice(0, params.limit)) this.#remove(run)
  }

  #remove(run: ModelRun): void {
    this.runs.delete(run.wanted.id)
    this.removed.set(run.wanted.id, (this.removed.get(run.wanted.id) ?? 0) + 1)
  }
}
