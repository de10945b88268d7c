import type {
  ClaimParams,
  CommandAnswer,
  CommitAnswer,
  EnqueueAnswer,
  Lease,
  NewRun,
  NewSignal,
  Outcome,
  PurgeParams,
  RecoverParams,
  RenewAnswer,
  RunCommand,
  RunCommit,
  RunRecord,
  SignalAnswer,
  StepWrite,
} from '../../port'
import { checkAnswer, checkRepeated, checkRepeatedClaim } from './model-answers'
import { dueAfterLoss, lossOf, ownersOfSuspects } from './model-losses'
import {
  claimableAt,
  earliest,
  ENDED,
  freeSlots,
  hasConflict,
  holderOfKey,
  mustRecover,
  purgeable,
  whyNot,
} from './model-queries'
import { type ModelEnd, type ModelRun, newModelRun, textsOf, waitingRows } from './model-run'
import { awaitAlso, mustNotRest, suspendedUntil, wakeByChild, wakeBySignal } from './model-wakes'
import { applyContents, beginAnew, writeStep } from './model-writes'
import { must, mustEqual, Violation } from './violation'

const ENDS = { complete: 'completed', fail: 'failed', timeOut: 'timed_out', cancelled: 'cancelled' } as const

type Wanted = Pick<ClaimParams, 'jobs' | 'holdsSuspect'>

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
  /** How each run ended, each time. */
  readonly ends = new Map<string, ModelEnd[]>()
  /** Runs changed since somebody last compared: each must show a higher version. */
  readonly touched = new Set<ModelRun>()
  readonly #now: () => number
  readonly #reachable: () => number
  /** A clock may be set back; what was due before may count as due still. */
  #latest = 0

  constructor(now: () => number, reachable: () => number) {
    this.#now = now
    this.#reachable = reachable
  }

  /** Whether the instant may have come for somebody who measured the time since the storage told it. */
  mayHaveCome(instant: number): boolean {
    return this.#reachable() >= instant
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

  claimable({ jobs, holdsSuspect }: Wanted, by = this.#now()): ModelRun[] {
    return claimableAt(this.runs, jobs, by).filter(({ crashes }) => crashes < 2 || !holdsSuspect)
  }

  claimed(params: ClaimParams, answer: readonly RunRecord[]): void {
    this.look()
    if (params.repeat === true) {
      checkRepeatedClaim(this.runs, params, answer)
      return
    }
    must(answer.length <= params.limit, () => `a claim for ${params.limit} runs took ${answer.length}`)
    let { holdsSuspect } = params
    for (const record of answer) {
      this.#claimOne({ ...params, holdsSuspect }, record)
      holdsSuspect ||= record.crashCount >= 2
    }
    const left = answer.length < params.limit ? this.claimable({ ...params, holdsSuspect })[0] : undefined
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
    run.waitingFor = null
    run.owner = params.workerId
    run.claimedAt = this.#now()
    run.leaseUntil = run.claimedAt + params.leaseMs
    run.commitNo = 0
    if (run.wanted.timeoutMs !== null) run.deadlineAt ??= this.#now() + run.wanted.timeoutMs
    run.events.push(...textsOf(params.events))
  }

  holds(lease: Lease): ModelRun | null {
    const run = this.runs.get(lease.runId)
    const isHeld = run?.status === 'running' && run.epoch === lease.epoch && run.token === lease.token
    return isHeld && lease.leaderEpoch === null ? run : null
  }

  committed(commits: readonly RunCommit[], answers: readonly CommitAnswer[]): void {
    mustEqual(answers.length, commits.length, 'number of answers to commit')
    const repeated: { readonly index: number; readonly wakes: number }[] = []
    for (const [index, commit] of commits.entries()) {
      const holder = this.holds(commit.lease)
      if (holder === null || holder.commitNo !== commit.commitNo - 1) {
        repeated.push({ index, wakes: this.runs.get(commit.lease.runId)?.wakes ?? 0 })
      } else {
        this.#apply(holder, commit)
        checkAnswer(holder, commit, answers[index])
      }
    }
    // What was applied before may be looked up when the list is done, and shows what the others of it did.
    for (const { index, wakes } of repeated) {
      const commit = commits[index]
      if (commit !== undefined) this.#checkAgain(commit, answers[index], wakes)
    }
  }

  #checkAgain(commit: RunCommit, answer: CommitAnswer | undefined, wakes: number): void {
    const run = this.runs.get(commit.lease.runId)
    const wasEarlier = answer?.kept === true && answer.wakes === wakes
    checkRepeated(run !== undefined && wasEarlier ? { ...run, wakes } : run, commit, answer)
  }

  #apply(run: ModelRun, commit: RunCommit): void {
    const { steps, children, outcome, leaseMs } = commit
    this.touched.add(run)
    for (const child of children) this.#bear(child)
    for (const step of steps) this.#write(run, step)
    applyContents(run, commit)
    if (outcome === null) run.leaseUntil = this.#now() + leaseMs
    else this.#leave(run, outcome)
  }

  #write(run: ModelRun, wanted: StepWrite): void {
    const output = wanted.child === null ? wanted.output : JSON.stringify(this.#bear(wanted.child))
    writeStep(run, { ...wanted, output }, this.#now())
  }

  /** The child is created with the row of its step, or another run has its key. */
  #bear(child: NewRun): string {
    const there = this.runs.get(child.id) ?? holderOfKey(this.runs, child) ?? null
    if (there === null) return this.#add(newModelRun(child, this.#now()))
    const { id, parentRunId } = there.wanted
    if (id !== child.id && child.parentRunId !== null && child.parentRunId !== parentRunId) {
      if (awaitAlso(this.runs, there, child.parentRunId)) this.touched.add(there)
    }
    return id
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
        if (outcome.onFailure != null) this.#bear(outcome.onFailure)
        break
      case 'cancelled':
        throw new Violation(`run ${run.wanted.id} was cancelled by its worker, and nobody had asked for it`)
      case 'release':
        this.#wait(run, run.createdAt, outcome.events)
        break
      case 'retryLater':
        run.attempt += 1
        run.error = outcome.error
        this.#wait(run, earliest([this.#now() + Math.floor(outcome.delayMs), run.deadlineAt]), outcome.events)
        run.waitingFor = 'retry'
        break
      case 'suspend': {
        const awaited = waitingRows(run).filter(({ name }) => outcome.steps.includes(name))
        const end = earliest([...awaited.map((step) => step.dueAt), run.deadlineAt])
        this.#wait(run, suspendedUntil(run, { outcome, end, now: this.#now() }), outcome.events)
        run.waitingFor = 'steps'
        mustNotRest(this.runs, run)
        break
      }
      default:
        throw new Violation(`outcome ${outcome.kind} is not part of the model`)
    }
  }

  #add(run: ModelRun): string {
    this.runs.set(run.wanted.id, run)
    this.touched.add(run)
    return run.wanted.id
  }

  #end(run: ModelRun, status: ModelRun['status'], events: RunCommit['events']): void {
    this.touched.add(run)
    Object.assign(run, { status, slot: null, owner: null, leaseUntil: null, finishedAt: this.#now(), waitingFor: null })
    if (status === 'cancelled') run.output = null
    run.events.push(...textsOf(events))
    const { wanted, output, error } = run
    this.ends.set(wanted.id, [...(this.ends.get(wanted.id) ?? []), { status, output, error }])
    for (const id of [wanted.parentRunId ?? '', ...run.alsoAwaitedBy]) {
      const parent = this.runs.get(id)
      if (parent === undefined || ENDED.includes(parent.status)) continue
      wakeByChild(parent, this.#now())
      mustNotRest(this.runs, parent)
      this.touched.add(parent)
    }
  }

  #wait(run: ModelRun, availableAt: number | null, events: RunCommit['events']): void {
    this.touched.add(run)
    Object.assign(run, { status: 'pending', owner: null, leaseUntil: null, availableAt, waitingFor: null })
    if (!run.wanted.holdKeyWhileWaiting) run.slot = null
    run.events.push(...textsOf(events))
  }

  renewed(leases: readonly Lease[], leaseMs: number, answers: readonly RenewAnswer[]): void {
    leases.forEach((lease, index) => {
      const run = this.holds(lease)
      if (run !== null) this.touched.add(Object.assign(run, { leaseUntil: this.#now() + leaseMs }))
      const answer = answers[index]
      const found = [
        answer?.kept,
        answer?.kept === true && answer.cancelRequested,
        answer?.kept === true && answer.wakes,
      ]
      const expected = [run !== null, run?.cancelAsked ?? false, run?.wakes ?? false]
      mustEqual(found, expected, `answer to renewal of ${lease.runId}`)
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
    const found = answer.map((record) => record.id).sort()
    const expected = mustRecover(this.abandoned(params), answer)
    must(expected.length <= params.limit, () => 'more runs were abandoned than the model compares')
    mustEqual(found, expected.map((run) => run.wanted.id).sort(), `runs recovered for ${params.deadWorkerId}`)
    const owners = ownersOfSuspects(this.runs.values())
    const { isCrash = true } = params
    for (const run of expected) {
      const { counts, longestMs } = lossOf(run, { owners, isCrash })
      if (counts) run.crashes += 1
      run.epoch += 1
      run.token = ''
      if (run.cancelAsked) this.#end(run, 'cancelled', params.events.cancelled)
      else if (counts && run.crashes >= params.maxCrashes) {
        this.#fallAtLimit(run, params)
      } else {
        const record = answer.find(({ id }) => id === run.wanted.id)
        this.#wait(run, dueAfterLoss(run, { record, now: this.#now(), longestMs }), params.events.pending)
      }
    }
  }

  /** Of a job that does not fail here it is due for who knows the job. */
  #fallAtLimit(run: ModelRun, { crashLimit, failsOnly, events }: RecoverParams): void {
    if (failsOnly?.includes(run.wanted.jobName) === false) {
      run.isSpent = true
      this.#wait(run, run.createdAt, events.pending)
    } else {
      run.error = crashLimit.error
      this.#end(run, 'failed', events.failed)
    }
  }

  /** Whether the run is in a state for it. */
  allows({ kind, runId }: Pick<RunCommand, 'kind' | 'runId'>): boolean {
    const run = this.runs.get(runId)
    const status = run?.status ?? ''
    if (kind === 'cancel') return status === 'pending' || status === 'running'
    if (kind === 'park') return status === 'pending'
    if (kind === 'unpark' || kind === 'failParked') return status === 'pending' && run?.waitingFor === 'unpark'
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
      if (run.status === 'running') run.events.push(...textsOf(command.events.requested))
      else this.#end(run, 'cancelled', command.events.cancelled)
    } else if (command.kind === 'remove') this.#remove(run)
    else if (command.kind === 'retry') this.#retry(run, command.events)
    else if (command.kind === 'park') this.#rest(run, { availableAt: null, waitingFor: 'unpark' }, command.events)
    else if (command.kind === 'unpark')
      this.#rest(run, { availableAt: run.createdAt, waitingFor: null }, command.events)
    else this.#end(Object.assign(run, { error: command.error }), 'failed', command.events)
  }

  /** It stays pending, and keeps its slot if it has one. */
  #rest(run: ModelRun, how: Pick<ModelRun, 'availableAt' | 'waitingFor'>, events: RunCommit['events']): void {
    this.touched.add(Object.assign(run, how))
    run.events.push(...textsOf(events))
  }

  signalled(signal: NewSignal, answer: SignalAnswer): void {
    const { runId, name, payload, dedupeKey, events } = signal
    const run = this.runs.get(runId)
    const isKnown = dedupeKey !== null && run?.dedupeKeys.has(dedupeKey) === true
    const refusal = isKnown ? 'duplicate' : ENDED.includes(run?.status ?? 'pending') ? 'wrong-state' : null
    const expected = run === undefined ? 'not-found' : (refusal ?? run.wakes + 1)
    mustEqual(answer.kept ? answer.position : answer.reason, expected, `answer to signal ${name} of ${runId}`)
    if (run === undefined || refusal !== null) return
    if (dedupeKey !== null) run.dedupeKeys.add(dedupeKey)
    this.touched.add(run)
    run.events.push(...textsOf(events))
    wakeBySignal(run)
    run.unread = [...run.unread, { position: run.wakes, name, payload }]
  }

  #retry(run: ModelRun, events: RunCommit['events']): void {
    beginAnew(run)
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
