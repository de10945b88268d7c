import type { CommitAnswer, Lease, Outcome, RunCommit, RunRecord } from '../../port'
import { assert, itemAt } from '../assert'
import { type OutcomeKind, outcomeOf, runCommit } from './builders'
import type { Kit } from './kit'

type KeptAnswer = Extract<CommitAnswer, { kept: true }>

/** A worker that holds one run and counts its commits. */
export class Holder {
  readonly run: RunRecord
  readonly lease: Lease
  #commitNo = 0
  readonly #kit: Kit

  constructor(kit: Kit, run: RunRecord) {
    this.#kit = kit
    this.run = run
    this.lease = { runId: run.id, epoch: run.leaseEpoch, token: run.claimToken ?? '', leaderEpoch: run.leaderEpoch }
  }

  get id(): string {
    return this.run.id
  }

  /** The commit that comes next, not sent yet. */
  next(over: Partial<RunCommit> = {}): RunCommit {
    return runCommit({ lease: this.lease, commitNo: this.#commitNo + 1 }, over)
  }

  /** Sends the commit, whatever comes of it, until that is decided. */
  async send(commit: RunCommit): Promise<CommitAnswer> {
    for (;;) {
      const answer = itemAt(await this.#kit.storage.commit([commit]), 0, 'answers of commit')
      if (answer.kept || answer.isBusy !== true) return answer
    }
  }

  /** A commit that must be kept. */
  async commit(over: Partial<RunCommit> = {}): Promise<KeptAnswer> {
    const answer = await this.send(this.next(over))
    assert(answer.kept, `commit ${this.#commitNo + 1} of run ${this.id}: should be kept, but was lost`)
    this.#commitNo += 1
    return answer
  }

  /** Leaves `running`, and answers how the run looks then. */
  async leave<K extends OutcomeKind>(
    kind: K,
    over: Partial<Extract<Outcome, { kind: K }>> = {},
    commitOver: Partial<RunCommit> = {},
  ): Promise<RunRecord> {
    await this.commit({ ...commitOver, outcome: outcomeOf(kind, over) })
    return this.#kit.run(this.id)
  }
}
