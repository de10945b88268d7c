import { calledRun, type CommitAnswer, type RunCommit, type StepWrite } from '@coji/durably-core/storage'
import type { CompiledQuery } from 'kysely'
import { bindChildren, childSteps, keyedChildren, type LeaseValues } from './commit-children'
import { commitStatements, type CommitStatements } from './commit-statements'
import { keepValues, kept, runValues, stepValues } from './commit-columns'
import type { Rows } from '../dialect'
import type { Executor } from '../connection'
import { bindNewRun } from './new-run'
import { createWriteLocked, type Waiting } from './row-locks'
import { bindEvents } from './run-events'
import type { SqlContext, WriteTarget } from '../statement'

/** Commits as lists of statements; `null` where the lease does not hold. */
export function createCommitLists(context: SqlContext, waiting: Waiting = 'long') {
  const statements = commitStatements(context)
  const writeLocked = createWriteLocked(context, waiting)
  return {
    async sendOne(target: WriteTarget, commit: RunCommit, patienceMs?: number): Promise<CommitAnswer | null> {
      const { queries, childAnswers } = bindCommit(statements, commit)
      const touched = { runIds: [commit.lease.runId], keys: keyedChildren(commit), patienceMs }
      return readAnswer(commit, await writeLocked(target, touched, queries), childAnswers)
    },
    /** Of many runs in one list. */
    async sendTogether(target: WriteTarget, commits: readonly RunCommit[]): Promise<(CommitAnswer | null)[]> {
      const lists = commits.map((commit) => bindCommit(statements, commit))
      return readAnswers(commits, lists, await target.write(lists.flatMap((entry) => entry.queries)))
    },
    sendTogetherNow(executor: Executor, commits: readonly RunCommit[]): (CommitAnswer | null)[] | null {
      const lists = commits.map((commit) => bindCommit(statements, commit))
      const results = executor.writeNow(lists.flatMap((entry) => entry.queries))
      return results === null ? null : readAnswers(commits, lists, results)
    },
  }
}

function readAnswers(
  commits: readonly RunCommit[],
  lists: readonly BoundCommit[],
  results: readonly Rows[],
): (CommitAnswer | null)[] {
  let start = 0
  return commits.map((commit, index) => {
    const { queries = [], childAnswers = [] } = lists[index] ?? {}
    const own = results.slice(start, start + queries.length)
    start += queries.length
    return readAnswer(commit, own, childAnswers)
  })
}

/** A commit as a list of statements: the children first, the run's own change last. */
interface BoundCommit {
  readonly queries: readonly CompiledQuery[]
  /** Where in the results the rows of steps with a child are. */
  readonly childAnswers: readonly number[]
}

function bindCommit(statements: CommitStatements, commit: RunCommit): BoundCommit {
  const { lease, commitNo, events, consumedSignals } = commit
  const { runId, epoch, token, leaderEpoch } = lease
  const values = { runId, epoch, token, leaderEpoch, commitNo }
  const queries = bindChildren(statements.children, commit, values)
  const childAnswers: number[] = []
  for (const step of commit.steps) {
    if (step.child !== null) childAnswers.push(queries.length)
    queries.push(bindStep(statements, step, values))
  }
  for (const { id, ...log } of commit.logs) queries.push(statements.log.bind({ ...values, ...log, logId: id }))
  if (events.length > 0) queries.push(...bindEvents({ statement: statements.event, events, after: 0, values }))
  if (consumedSignals.length > 0) {
    queries.push(statements.consume.bind({ ...values, positions: JSON.stringify(consumedSignals) }))
  }
  queries.push(...bindOutcome(statements, commit, values))
  return { queries, childAnswers }
}

function bindStep(statements: CommitStatements, step: StepWrite, lease: LeaseValues): CompiledQuery {
  const { child } = step
  if (child === null) return statements.step.bindBoth(stepValues(step), lease)
  return statements.childStep.bind({
    ...lease,
    ...stepValues(step),
    childId: child.id,
    childTenant: child.tenant,
    childJob: child.jobName,
    childKey: child.idempotencyKey,
  })
}

function bindOutcome(statements: CommitStatements, commit: RunCommit, lease: LeaseValues): CompiledQuery[] {
  const { outcome, events } = commit
  if (outcome === null) return [statements.keep.bindBoth(keepValues(commit), lease)]
  const after = events.length
  const { eventUnlessCancelled, eventIfCancelled } = statements
  const called = calledRun(outcome)
  return [
    ...(called === null ? [] : bindNewRun(statements.called, called, { extra: lease, firstId: null })),
    ...bindEvents({ statement: eventUnlessCancelled, events: outcome.events, after, values: lease }),
    ...bindEvents({ statement: eventIfCancelled, events: outcome.eventsIfCancelled, after, values: lease }),
    (endsAnyway(outcome.kind) ? statements.wakeParents : statements.wakeParentsIfCancelled).bind(lease),
    statements.outcome[outcome.kind].bindBoth(runValues(commit), lease),
  ]
}

function endsAnyway(kind: NonNullable<RunCommit['outcome']>['kind']): boolean {
  return kind === 'complete' || kind === 'fail' || kind === 'timeOut' || kind === 'cancelled'
}

function readAnswer(commit: RunCommit, results: readonly Rows[], childAnswers: readonly number[]): CommitAnswer | null {
  const row = results.at(-1)?.[0]
  if (row === undefined) return null
  const steps = childSteps(commit)
  return kept(
    row,
    steps.map((step, index) => idIn(results[childAnswers[index] ?? -1]?.[0]?.['output'], step)),
  )
}

/** The run of a step with a child: the one that was created, or the one that has its key. */
export function idIn(output: unknown, step: StepWrite): string {
  return typeof output === 'string' ? String(JSON.parse(output)) : (step.child?.id ?? '')
}
