import type { EventInput } from '../job'
import type { StepAnswer } from './parcel'
import type { CommitAnswer, NewRun, RunCommit, StepWrite } from '../port'

/** What a step has to persist at once. */
export interface StepCommit {
  /** Rows in their order; more than one when the step goes on in a row of its own. */
  readonly writes: readonly StepWrite[]
  /** The run has got further with it. */
  readonly hasProgressed: boolean
  /** The highest index of a completed step, plus one; `null` leaves it. */
  readonly currentStepIndex: number | null
  /** Runs to create with the rows. */
  readonly children?: readonly NewRun[]
  /** Positions of the signals that the rows used up. */
  readonly consumedSignals: readonly number[]
  /** Stored with the row; emitted by the caller once it is kept. */
  readonly event: EventInput | null
}

/** Whether the step of a transaction goes without what else has gathered, which the database may refuse. */
export type Take = (step: StepCommit, isAlone: boolean) => Taken

/** What a transaction carries as the run's commit in flight. */
export interface Taken {
  readonly commit: RunCommit
  /** Nothing of others goes with it. */
  readonly isAlone: boolean
  /** Once `keep` or `drop` was called. */
  readonly answered: Promise<StepAnswer>
  /** It was committed, or the lease was found lost. */
  keep(answer: CommitAnswer): void
  /** It was rolled back: what it carried of others goes with the next commit, one by one if it is suspected. */
  giveBack(params: { readonly isNumberUsed: boolean; readonly isSuspected?: boolean }): void
  /** What became of it will never be known here: of the run nothing else is written but how it ends. */
  drop(): void
  /**
   * Writes a commit of nothing under its number. Whatever became of the transaction, it is decided from then on: one
   * that was still under way finds its number taken. Only the database can tell how it was decided.
   */
  settleNumber(): Promise<CommitAnswer>
}
