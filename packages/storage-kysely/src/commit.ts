import {
  type CommitAnswer,
  ConflictError,
  type RunCommit,
  type RunStatus,
  StorageError,
  type StepWrite,
} from '@coji/durably-core'
import { type CompiledQuery, sql } from 'kysely'
import { commitStatements, type CommitStatements, type LeaseName } from './commit-statements'
import { isConstraintError } from './driver-errors'
import type { Rows } from './drivers/hooks'
import type { FindConflict } from './enqueue'
import type { Executor } from './executor'
import { bindNewRun } from './new-run'
import { outcomeValues } from './outcomes'
import { bindEvents } from './run-events'
import { toJson } from './rows'
import { type SqlContext, type SqlValue, statement } from './statement'

/** Sends the statements of a transaction that is already open. */
export interface CommitTarget {
  write(list: readonly CompiledQuery[]): Promise<readonly Rows[]>
  read(query: CompiledQuery): Promise<Rows>
}

export interface CommitWriter {
  commit(executor: Executor, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]>
  /** For one commit as the last statements of a transaction: `null` when the lease does not hold. */
  commitIn(target: CommitTarget, commit: RunCommit): Promise<CommitAnswer | null>
  /** Whether a commit that found nothing to do had been applied before. */
  lookUp(target: CommitTarget, commit: RunCommit): Promise<CommitAnswer>
}

const LOST: CommitAnswer = Object.freeze({ kept: false })

export function createCommit(context: SqlContext, findConflict: FindConflict): CommitWriter {
  const statements = commitStatements(context)
  const look = lookStatements(context)

  async function lookUp(target: CommitTarget, commit: RunCommit): Promise<CommitAnswer> {
    const { runId, epoch, token } = commit.lease
    const [row] = await target.read(look.run.bind({ runId, epoch, token, commitNo: commit.commitNo }))
    if (row === undefined) return LOST
    const stepIds = childSteps(commit).map((step) => step.id)
    const outputs = stepIds.length === 0 ? [] : await target.read(look.steps.bind({ stepIds: JSON.stringify(stepIds) }))
    const outputOf = new Map(outputs.map((step) => [step['id'], step['output']]))
    return kept(
      row,
      childSteps(commit).map((step) => idIn(outputOf.get(step.id), step)),
    )
  }

  async function send(target: CommitTarget, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]> {
    const lists = commits.map((commit) => bindCommit(statements, commit))
    const results = await target.write(lists.flatMap((entry) => entry.queries))
    const answers: CommitAnswer[] = []
    let start = 0
    for (const [index, commit] of commits.entries()) {
      const { queries = [], childAnswers = [] } = lists[index] ?? {}
      const own = results.slice(start, start + queries.length)
      start += queries.length
      answers.push(readAnswer(commit, own, childAnswers) ?? (await lookUp(target, commit)))
    }
    return answers
  }

  /** One bad commit must not take those of other runs along. */
  async function sendSingly(executor: Executor, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]> {
    const answers: CommitAnswer[] = []
    const failures: unknown[] = []
    for (const commit of commits) {
      try {
        answers.push(...(await send(executor, [commit])))
      } catch (error) {
        if (!isRefusal(error)) throw error
        failures.push(await explain(executor, commit, error))
      }
    }
    if (failures.length > 0) throw failures[0]
    return answers
  }

  async function explain(target: CommitTarget, commit: RunCommit, error: unknown): Promise<unknown> {
    const children = childSteps(commit).flatMap((step) => step.child ?? [])
    if (children.length === 0 || !isConstraintError(error)) return error
    return (await findConflict(target, children)) ?? error
  }

  return {
    lookUp,
    async commit(executor, commits) {
      if (commits.length === 0) return []
      try {
        return await send(executor, commits)
      } catch (error) {
        const [only] = commits
        if (!isRefusal(error)) throw error
        if (commits.length === 1 && only !== undefined) throw await explain(executor, only, error)
        return sendSingly(executor, commits)
      }
    },
    async commitIn(target, commit) {
      const { queries, childAnswers } = bindCommit(statements, commit)
      return readAnswer(commit, await target.write(queries), childAnswers)
    },
  }
}

interface BoundCommit {
  readonly queries: readonly CompiledQuery[]
  /** Where in the results the rows of steps with a child are. */
  readonly childAnswers: readonly number[]
}

function bindCommit(statements: CommitStatements, commit: RunCommit): BoundCommit {
  const { lease, commitNo, events, consumedSignals } = commit
  const { runId, epoch, token, leaderEpoch } = lease
  const values = { runId, epoch, token, leaderEpoch, commitNo }
  const queries: CompiledQuery[] = []
  const childAnswers: number[] = []
  for (const step of commit.steps) {
    queries.push(...bindStep(statements, step, values))
    if (step.child !== null) childAnswers.push(queries.length - 1)
  }
  for (const { id, ...log } of commit.logs) queries.push(statements.log.bind({ ...values, ...log, logId: id }))
  if (events.length > 0) queries.push(...bindEvents({ statement: statements.event, events, after: 0, values }))
  if (consumedSignals.length > 0) {
    queries.push(statements.consume.bind({ ...values, positions: JSON.stringify(consumedSignals) }))
  }
  queries.push(...bindOutcome(statements, commit, values))
  return { queries, childAnswers }
}

type LeaseValues = Readonly<Record<LeaseName, SqlValue>>

function bindStep(statements: CommitStatements, step: StepWrite, lease: LeaseValues): CompiledQuery[] {
  const { id, name, index, kind, status, attempt, output, error, checkpoint, waitName, due, child } = step
  const values = {
    ...lease,
    ...{ stepId: id, name, index, kind, status, attempt, output, error, checkpoint, waitName },
    errorDetail: toJson(step.errorDetail),
    dueAt: due !== null && 'at' in due ? due.at : null,
    dueInMs: due !== null && 'inMs' in due ? due.inMs : null,
    minusDurationMs: -step.durationMs,
  }
  if (child === null) return [statements.step.bind(values)]
  const childValues = {
    childId: child.id,
    childTenant: child.tenant,
    childJob: child.jobName,
    childKey: child.idempotencyKey,
  }
  return [
    ...bindNewRun(statements.child, child, { extra: lease, firstId: null }),
    statements.childStep.bind({ ...values, ...childValues }),
  ]
}

function bindOutcome(statements: CommitStatements, commit: RunCommit, lease: LeaseValues): CompiledQuery[] {
  const { outcome, events } = commit
  const values = {
    ...lease,
    leaseMs: commit.leaseMs,
    currentStepIndex: commit.currentStepIndex,
    progress: toJson(commit.progress),
    hasProgressed: commit.steps.some((step) => step.status !== 'started') ? 1 : 0,
    eventCount: events.length + (outcome?.events.length ?? 0),
    cancelledEventCount: events.length + (outcome?.eventsIfCancelled.length ?? 0),
  }
  if (outcome === null) return [statements.keep.bind(values)]
  const after = events.length
  const { eventUnlessCancelled, eventIfCancelled } = statements
  return [
    ...bindEvents({ statement: eventUnlessCancelled, events: outcome.events, after, values: lease }),
    ...bindEvents({ statement: eventIfCancelled, events: outcome.eventsIfCancelled, after, values: lease }),
    (endsAnyway(outcome.kind) ? statements.wakeParent : statements.wakeParentIfCancelled).bind(lease),
    statements.leave[outcome.kind].bind({ ...values, ...outcomeValues(outcome) }),
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

function kept(row: Rows[number], children: readonly string[]): CommitAnswer {
  return {
    kept: true,
    status: row['status'] as RunStatus,
    seq: row['last_event_sequence'] as number,
    wakes: row['wakes'] as number,
    cancelRequested: row['cancel_requested_at'] !== null,
    children,
  }
}

function childSteps(commit: RunCommit): readonly StepWrite[] {
  return commit.steps.filter((step) => step.child !== null)
}

function idIn(output: unknown, step: StepWrite): string {
  return typeof output === 'string' ? String(JSON.parse(output)) : (step.child?.id ?? '')
}

function isRefusal(error: unknown): boolean {
  return error instanceof ConflictError || (error instanceof StorageError && error.code === 'STORAGE_REJECTED')
}

function lookStatements(context: SqlContext) {
  const { tables, dialect } = context
  return {
    run: statement<'runId' | 'epoch' | 'token' | 'commitNo'>(
      context,
      (p) => sql`select r.status, r.last_event_sequence, r.wakes, r.cancel_requested_at from ${tables.runs} as r
        where r.id = ${p('runId')} and r.lease_epoch = ${p('epoch')} and r.claim_token = ${p('token')}
          and r.commit_no = ${p('commitNo')}`,
    ),
    steps: statement<'stepIds'>(
      context,
      (p) => sql`select s.id, s.output from ${tables.steps} as s
        where s.id in (select value from ${dialect.listOf(p('stepIds'))})`,
    ),
  }
}
