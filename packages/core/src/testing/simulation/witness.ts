import type {
  ClaimParams,
  CommandAnswer,
  CommitAnswer,
  EnqueueAnswer,
  Lease,
  RenewAnswer,
  RunCommit,
  RunRecord,
} from '../../port'
import { judgeOutcome, judgeStart } from './judge'
import { judgeRows } from './judge-rows'
import { judgeStreams, type StreamTry } from './judge-streams'
import type { Model } from './model'
import type { BodyStart } from './scripted-bodies'
import { must, mustEqual, Violation } from './violation'

/** What one process has been told, as opposed to what is true. */
interface Told {
  /** The leases of the claims whose answer arrived, by run. */
  readonly leases: Map<string, readonly Lease[]>
  /** Leases, with the reason why nothing more may begin under them. */
  readonly over: Map<string, string>
  /** The token of a claim without an answer. */
  unanswered: string | null
}

export interface WitnessParams {
  readonly model: Model
  /** Whether engines record all events. */
  readonly keepsHistory: boolean
  /** For what is seen inside the engine, which would take an exception for one of its storage. */
  readonly report: (judgement: () => void) => void
}

/**
 * Watches the engine from both sides: what job bodies do, and what was accepted on behalf of their runs. The storage
 * cannot testify against itself, and the model cannot see bodies.
 */
export class Witness {
  readonly leases: Lease[] = []
  bodyStarts = 0
  /** Bodies begun by a process that did not know yet that it had lost the run. Allowed; their results are not. */
  zombieStarts = 0
  readonly #model: Model
  readonly #told = new Map<number, Told>()
  readonly #starts = new Set<string>()
  /** Of streams, by their names. */
  readonly #tries = new Map<string, StreamTry>()
  /** The run that each item of each trigger made. */
  readonly #created = new Map<string, string>()

  readonly #keepsHistory: boolean
  readonly #report: WitnessParams['report']

  constructor({ model, keepsHistory, report }: WitnessParams) {
    this.#model = model
    this.#keepsHistory = keepsHistory
    this.#report = report
  }

  #judge(isRight: boolean, otherwise: () => string): void {
    if (!isRight) this.#report(() => must(false, otherwise))
  }

  /** What a claim took whose answer was lost is asked for before anything else. */
  claiming(process: number, { claimToken, repeat }: ClaimParams): void {
    const { unanswered } = this.#of(process)
    const isRight = unanswered === null ? repeat !== true : repeat === true && claimToken === unanswered
    this.#judge(
      isRight,
      () => `process ${process} claims with token ${claimToken}; claim ${unanswered} has no answer yet`,
    )
  }

  /** As far as the storage knows: whoever holds one says so. */
  claimingBeside(process: number, { holdsSuspect, repeat }: ClaimParams): void {
    if (holdsSuspect || repeat === true) return
    for (const [runId, leases] of this.#of(process).leases) {
      const held = leases.map((lease) => this.#model.holds(lease)).find((run) => run !== null)
      this.#judge((held?.crashes ?? 0) < 2, () => `process ${process} holds the suspect ${runId} and asks for another`)
    }
  }

  claimFailed(process: number, { claimToken }: ClaimParams): void {
    this.#of(process).unanswered = claimToken
  }

  /** A worker must say what it holds when it recovers others. */
  recovering(process: number, held: readonly string[]): void {
    for (const [runId, leases] of this.#of(process).leases) {
      const isHolder = leases.some((lease) => this.#model.holds(lease) !== null)
      this.#judge(
        !isHolder || held.includes(runId),
        () => `process ${process} recovers others and does not say that it holds ${runId}`,
      )
    }
  }

  claimDelivered(process: number, runs: readonly RunRecord[]): void {
    const told = this.#of(process)
    const { leases } = told
    told.unanswered = null
    for (const run of runs) leases.set(run.id, [...(leases.get(run.id) ?? []), leaseOf(run)])
  }

  /** However often a trigger was sent, it made one run. */
  enqueued(answers: readonly EnqueueAnswer[]): void {
    for (const { run, created } of answers) {
      const call = run.labels['call']
      if (!created || call === undefined) continue
      const earlier = this.#created.get(call)
      must(earlier === undefined || earlier === run.id, () => `one trigger made two runs, ${earlier} and ${run.id}`)
      this.#created.set(call, run.id)
    }
  }

  claimed(runs: readonly RunRecord[]): void {
    this.leases.push(...runs.map(leaseOf))
  }

  commitDelivered(process: number, commits: readonly RunCommit[], answers: readonly CommitAnswer[]): void {
    commits.forEach(({ lease, outcome }, index) => {
      const answer = answers[index]
      if (answer?.kept === true && outcome !== null) this.#end(process, lease, 'it had been ended')
      else if (answer !== undefined) this.#note(process, lease, answer)
    })
  }

  renewalDelivered(process: number, leases: readonly Lease[], answers: readonly RenewAnswer[]): void {
    leases.forEach((lease, index) => {
      const answer = answers[index]
      if (answer !== undefined) this.#note(process, lease, answer)
    })
  }

  cancelDelivered(process: number, runId: string, answer: CommandAnswer): void {
    if (!answer.applied || answer.run.status !== 'running') return
    const cancelled = leaseOf(answer.run)
    // The answer to the claim may still be on its way: then nobody here knows yet what was cancelled.
    const known = this.#of(process).leases.get(runId) ?? []
    if (known.some((lease) => nameOf(lease) === nameOf(cancelled)))
      this.#end(process, cancelled, 'it was cancelled here')
  }

  /**
   * Before the model has taken the commits in: only what will be accepted is judged. `rows` are those of the
   * application that come with it, in its transaction.
   */
  committing(commits: readonly RunCommit[], rows: readonly string[] = []): void {
    for (const commit of commits) {
      const { lease, commitNo, outcome } = commit
      const run = this.#model.holds(lease)
      if (run === null || run.commitNo !== commitNo - 1) continue
      judgeRows(this.#model, run, commit)
      const done = commit.steps.filter(({ kind, status }) => kind === 'transaction' && status === 'completed')
      const names = done.map(({ name }) => name)
      mustEqual(rows, names, `rows that come with the transactions of ${lease.runId}`)
      judgeStreams({ run, commit, keepsHistory: this.#keepsHistory, tries: this.#tries })
      if (outcome !== null && !run.cancelAsked) judgeOutcome(run, outcome)
    }
  }

  bodyStarted(process: number, start: BodyStart): void {
    const { runId, step, runAttempt } = start
    this.bodyStarts += 1
    const what = `body of ${step.name} of run ${runId} began in process ${process}`
    const life = this.#model.removed.get(runId) ?? 0
    if (step.once === true)
      this.#first(`once ${runId} ${life} ${step.name} ${runAttempt}`, `${what}, a second time in attempt ${runAttempt}`)
    const { leases, over } = this.#of(process)
    const known = leases.get(runId)
    if (known === undefined) throw new Violation(`${what} without a claim`)
    // With two executions of one run in one process there is no telling which one this is.
    const lease = known.length === 1 ? known[0] : undefined
    if (start.tryName !== null) this.#tries.set(start.tryName, { runId, stepName: step.name, lease })
    if (lease === undefined) return
    const reason = over.get(nameOf(lease))
    must(reason === undefined, () => `${what} although ${reason}`)
    // What is known to be rolled back begins again.
    if (start.kind !== 'transaction') {
      this.#first(
        `body ${step.name} ${start.tools.attempt} ${nameOf(lease)}`,
        `${what}, a second time under epoch ${lease.epoch}`,
      )
    }
    const run = this.#model.holds(lease)
    if (run === null) this.zombieStarts += 1
    else {
      judgeStart(run, start, what)
      const live = run.liveSteps.get(step.name)
      const dueAt = live?.status === 'waiting' ? live.dueAt : null
      must(dueAt === null || this.#model.mayHaveCome(dueAt), () => `${what} before its time, ${dueAt}`)
    }
  }

  #first(name: string, otherwise: string): void {
    must(!this.#starts.has(name), () => otherwise)
    this.#starts.add(name)
  }

  #note(process: number, lease: Lease, answer: CommitAnswer | RenewAnswer): void {
    if (!answer.kept) this.#end(process, lease, 'its lease was known to be lost')
    else if (answer.cancelRequested) this.#end(process, lease, 'it was known to be cancelled')
  }

  #end(process: number, lease: Lease, reason: string): void {
    const { over } = this.#of(process)
    if (!over.has(nameOf(lease))) over.set(nameOf(lease), reason)
  }

  #of(process: number): Told {
    let told = this.#told.get(process)
    if (told === undefined) {
      told = { leases: new Map(), over: new Map(), unanswered: null }
      this.#told.set(process, told)
    }
    return told
  }
}

function leaseOf({ id, leaseEpoch, claimToken }: RunRecord): Lease {
  return { runId: id, epoch: leaseEpoch, token: claimToken ?? '', leaderEpoch: null }
}

function nameOf({ runId, epoch, token }: Lease): string {
  return `${runId}/${epoch}/${token}`
}
