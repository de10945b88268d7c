import { type CommitAnswer, ConflictError, createsRuns, type RunCommit, StorageError } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { childSteps } from './commit-children'
import { createCommitLists, idIn } from './commit-list'
import { kept } from './commit-columns'
import { type Executor, isBusy, isConstraintError } from '../connection'
import type { FindConflict } from './enqueue'
import { BUSY, createGroupCommit } from './group-commit'
import { createLoneCommit, isLone } from './lone-commit'
import { NeighbourPace } from './neighbour-pace'
import { type SqlContext, statement, type StatementTarget, type WriteTarget } from '../statement'

export interface CommitWriter {
  /** Within this very call where that is possible. */
  commit(executor: Executor, commits: readonly RunCommit[]): readonly CommitAnswer[] | Promise<readonly CommitAnswer[]>
  /** For one commit as the last statements of a transaction: `null` when the lease does not hold. */
  commitIn(target: StatementTarget, commit: RunCommit): Promise<CommitAnswer | null>
  /** Whether a commit that found nothing to do had been applied before. */
  lookUp(target: StatementTarget, commit: RunCommit): Promise<CommitAnswer>
}

const LOST: CommitAnswer = Object.freeze({ kept: false })

export function createCommit(context: SqlContext, findConflict: FindConflict): CommitWriter {
  const lists = createCommitLists(context)
  const sendGrouped = createSendGrouped(context)
  const look = lookStatements(context)
  const { hasWritingQueries } = context.dialect

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

  async function send(executor: Executor, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]> {
    const found = await (hasWritingQueries ? sendGrouped(executor, commits) : lists.sendTogether(executor, commits))
    return lookUpLost(executor, commits, found)
  }

  async function lookUpLost(executor: Executor, commits: readonly RunCommit[], found: Answers) {
    const answers: CommitAnswer[] = []
    for (const [index, commit] of commits.entries()) answers.push(found[index] ?? (await lookUp(executor, commit)))
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

  function sendNow(executor: Executor, commits: readonly RunCommit[]) {
    const found = hasWritingQueries ? null : lists.sendTogetherNow(executor, commits)
    if (found === null) return sendLater(executor, commits)
    const answers = found.filter((answer) => answer !== null)
    return answers.length === commits.length ? answers : lookUpLost(executor, commits, found)
  }

  async function sendLater(executor: Executor, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]> {
    try {
      return await send(executor, commits)
    } catch (error) {
      const [only] = commits
      if (!isRefusal(error)) throw error
      if (commits.length === 1 && only !== undefined) throw await explain(executor, only, error)
      return sendSingly(executor, commits)
    }
  }

  return {
    lookUp,
    commit: (executor, commits) => (commits.length === 0 ? [] : sendNow(executor, commits)),
    commitIn: lists.sendOne,
  }
}

/** For what comes after one that has waited in vain: free or not, nothing more. */
const NO_PATIENCE_MS = 2

/**
 * On Postgres one statement for all but those that create runs, and the second of a run. Nobody waits for a run or a key
 * that somebody else holds longer than an honest neighbour takes, and of a list only the first does; who has to is busy.
 */
function createSendGrouped(context: SqlContext) {
  const lists = createCommitLists(context, 'briefly')
  const groupCommit = createGroupCommit(context)
  const loneCommit = createLoneCommit(context)
  const pace = new NeighbourPace()

  async function sendGroup(target: WriteTarget, commits: readonly RunCommit[]) {
    const [first] = commits
    if (first === undefined) return []
    const beganAt = performance.now()
    try {
      const isAlone = commits.length === 1 && isLone(first)
      const answers = await (isAlone
        ? loneCommit(target, first, pace.patienceMs).then((answer) => [answer])
        : groupCommit(target, commits, pace.patienceMs))
      pace.note(performance.now() - beganAt)
      return answers
    } catch (error) {
      if (!isBusy(error) || commits.length === 1) throw error
      return groupCommit(target, commits, null)
    }
  }

  return async function sendGrouped({ impatient }: Executor, commits: readonly RunCommit[]) {
    const group = new Map<string, RunCommit>()
    for (const commit of commits) {
      const { runId } = commit.lease
      if (!createsRuns(commit) && !group.has(runId)) group.set(runId, commit)
    }
    const grouped = [...group.values()]
    const answers = new Map<RunCommit, CommitAnswer | null>()
    const found = await unlessBusy(grouped, () => sendGroup(impatient, grouped))
    for (const [index, commit] of grouped.entries()) answers.set(commit, found[index] ?? null)
    let { patienceMs } = pace
    for (const commit of commits) {
      if (answers.has(commit)) continue
      const before = group.get(commit.lease.runId)
      // It comes after one that is still to come.
      const isTooEarly = before !== undefined && answers.get(before) === BUSY
      const send = async () => [await lists.sendOne(impatient, commit, patienceMs)]
      const [answer = null] = isTooEarly ? [BUSY] : await unlessBusy([commit], send)
      if (answer === BUSY) patienceMs = NO_PATIENCE_MS
      answers.set(commit, answer)
    }
    return commits.map((commit) => answers.get(commit) ?? null)
  }
}

type Answers = readonly (CommitAnswer | null)[]

async function unlessBusy(commits: readonly RunCommit[], send: () => Promise<Answers>): Promise<Answers> {
  try {
    return await send()
  } catch (error) {
    if (!isBusy(error)) throw error
    return commits.map(() => BUSY)
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
