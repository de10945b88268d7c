import type { ClaimParams, CommitAnswer, RunCommit, RunRecord } from '../../port'
import { childrenOf } from './model-queries'
import type { ModelRun } from './model-run'
import { mustEqual } from './violation'

/** The answer to a commit that was just applied, or had been. */
export function checkAnswer(run: ModelRun, commit: RunCommit, answer: CommitAnswer | undefined): void {
  const expected = [true, run.status, run.events.length, run.cancelAsked, run.wakes, childrenOf(run, commit)]
  const found =
    answer?.kept === true
      ? [true, answer.status, answer.seq, answer.cancelRequested, answer.wakes, answer.children]
      : [answer?.kept]
  mustEqual(found, expected, whatOf(commit))
}

/** It may be another commit under a number that is taken: a transaction that was given up, whose answer nobody reads. */
export function checkRepeated(run: ModelRun | undefined, commit: RunCommit, answer: CommitAnswer | undefined): void {
  const { lease, commitNo } = commit
  const isAgain = run?.epoch === lease.epoch && run.token === lease.token && run.commitNo === commitNo
  if (!isAgain) mustEqual(answer, { kept: false }, whatOf(commit))
  else if (childrenOf(run, commit).includes(null)) mustEqual(answer?.kept, true, whatOf(commit))
  else checkAnswer(run, commit, answer)
}

export function checkRepeatedClaim(
  all: ReadonlyMap<string, ModelRun>,
  { claimToken }: ClaimParams,
  answer: readonly RunRecord[],
): void {
  const holding = [...all.values()].filter((run) => run.owner !== null && run.token === claimToken)
  const expected = holding.map((run) => run.wanted.id).sort()
  mustEqual(answer.map((run) => run.id).sort(), expected, 'runs of a repeated claim')
}

function whatOf({ lease, commitNo }: RunCommit): string {
  return `answer to commit ${commitNo} of ${lease.runId} under epoch ${lease.epoch}`
}
