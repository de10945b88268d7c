import { type CommitAnswer, ConflictError, type RunCommit, StorageError } from '@coji/durably-core'
import { sql } from 'kysely'
import { childSteps, createsRuns } from './commit-children'
import { createCommitLists, idIn } from './commit-list'
import { kept } from './commit-values'
import { isConstraintError } from './driver-errors'
import type { FindConflict } from './enqueue'
import type { Executor } from './executor'
import { createGroupCommit } from './group-commit'
import { type SqlContext, statement } from './statement'
import type { StatementTarget } from './statement-target'

export interface CommitWriter {
  commit(executor: Executor, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]>
  /** For one commit as the last statements of a transaction: `null` when the lease does not hold. */
  commitIn(target: StatementTarget, commit: RunCommit): Promise<CommitAnswer | null>
  /** Whether a commit that found nothing to do had been applied before. */
  lookUp(target: StatementTarget, commit: RunCommit): Promise<CommitAnswer>
}

const LOST: CommitAnswer = Object.freeze({ kept: false })

export function createCommit(context: SqlContext, findConflict: FindConflict): CommitWriter {
  const lists = createCommitLists(context)
  const groupCommit = createGroupCommit(context)
  const look = lookStatements(context)

  async function lookUp(target: StatementTarget, commit: RunCommit): Promise<CommitAnswer> {
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

  /** On Postgres one statement for all but those that create runs, and the second of a run. */
  async function sendGrouped(target: StatementTarget, commits: readonly RunCommit[]) {
    const group = new Map<string, RunCommit>()
    for (const commit of commits) {
      const { runId } = commit.lease
      if (!createsRuns(commit) && !group.has(runId)) group.set(runId, commit)
    }
    const grouped = [...group.values()]
    const answers = new Map<RunCommit, CommitAnswer | null>()
    const found = grouped.length === 0 ? [] : await groupCommit(target, grouped)
    for (const [index, commit] of grouped.entries()) answers.set(commit, found[index] ?? null)
    for (const commit of commits) if (!answers.has(commit)) answers.set(commit, await lists.sendOne(target, commit))
    return commits.map((commit) => answers.get(commit) ?? null)
  }

  async function send(target: StatementTarget, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]> {
    const sendAll = context.dialect.name === 'sqlite' ? lists.sendTogether : sendGrouped
    const found = await sendAll(target, commits)
    const answers: CommitAnswer[] = []
    for (const [index, commit] of commits.entries()) answers.push(found[index] ?? (await lookUp(target, commit)))
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

  async function explain(target: StatementTarget, commit: RunCommit, error: unknown): Promise<unknown> {
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
    commitIn: lists.sendOne,
  }
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
      (p) => sql`select s.id, ${dialect.read(sql.ref('s.output'), 'json')} as output from ${tables.steps} as s
        where s.id in (select value from ${dialect.listOf(p('stepIds'))})`,
    ),
  }
}
