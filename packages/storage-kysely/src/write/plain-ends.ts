import type { CommitAnswer, RunCommit } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { CommitWriter } from './commit'
import { kept } from './commit-columns'
import type { Rows } from '../dialect'
import type { Executor } from '../connection'
import { and, holds, type Sql, type SqlContext, statement } from '../statement'

/** Of fewer the ordinary way costs no more. */
const WORTH_A_STATEMENT = 2

/** Commits of which those that are nothing but a success go together, and the others as ever. */
export function withPlainEnds(context: SqlContext, { commit }: Pick<CommitWriter, 'commit'>): CommitWriter['commit'] {
  const endPlainly = createPlainEnds(context)

  async function commitTogether(executor: Executor, commits: readonly RunCommit[]): Promise<readonly CommitAnswer[]> {
    const ended = await endPlainly(executor, commits)
    const others = commits.filter((one) => !ended.has(one))
    const answers = others.length === 0 ? [] : await commit(executor, others)
    let next = 0
    return commits.map((one) => ended.get(one) ?? (answers[next++] as CommitAnswer))
  }

  return (executor, commits) =>
    commits.length >= WORTH_A_STATEMENT && commits.some(isPlain)
      ? commitTogether(executor, commits)
      : commit(executor, commits)
}

/**
 * Runs that succeed with nothing to write but that, many in one statement. `undefined` for each commit that is not of this
 * kind, and for each whose run is not as it mostly is: for those the ordinary way knows what to do.
 */
function createPlainEnds(context: SqlContext) {
  const end = endStatement(context)
  const { hasOneWriter } = context.dialect

  async function send(executor: Executor, query: ReturnType<typeof end.bind>): Promise<Rows> {
    if (!hasOneWriter) return (await executor.impatient.write([query]))[0] ?? []
    return (executor.writeNow([query]) ?? (await executor.write([query])))[0] ?? []
  }

  return async function endPlainly(
    executor: Executor,
    commits: readonly RunCommit[],
  ): Promise<ReadonlyMap<RunCommit, CommitAnswer>> {
    const answers = new Map<RunCommit, CommitAnswer>()
    const plain = commits.filter(isPlain)
    if (plain.length < WORTH_A_STATEMENT) return answers
    const byId = new Map(plain.map((commit) => [commit.lease.runId, commit]))
    const ends = [...byId.values()].map(({ lease, commitNo }) => [
      ...[lease.runId, lease.epoch, lease.token, lease.leaderEpoch, commitNo],
    ])
    for (const row of await send(executor, end.bind({ ends: JSON.stringify(ends) }))) {
      const commit = byId.get(String(row['id']))
      if (commit !== undefined) answers.set(commit, kept(row, []))
    }
    return answers
  }
}

/** Whether there is nothing in it but the success. */
function isPlain({ outcome, ...commit }: RunCommit): boolean {
  if (outcome?.kind !== 'complete' || outcome.output !== null) return false
  const lists = [commit.steps, commit.children, commit.logs, commit.events, commit.consumedSignals]
  const isBare =
    lists.every((list) => list.length === 0) && outcome.events.length + outcome.eventsIfCancelled.length === 0
  return isBare && commit.progress === null && commit.currentStepIndex === null && !commit.hasProgressed
}

/** Nobody waits for the run, nobody wants it cancelled, and on Postgres nobody else holds it. */
function endStatement(context: SqlContext) {
  const { tables, dialect, fences } = context
  const field = (index: number, type: 'text' | 'integer') => dialect.field(sql`e.value`, index, type)
  return statement<'ends'>(context, (p) => {
    const fence = holds(fences, dialect, {
      runId: field(0, 'text'),
      epoch: field(1, 'integer'),
      token: field(2, 'text'),
      leaderEpoch: field(3, 'integer'),
      commitNo: field(4, 'integer'),
    })
    const isUsual = sql`r.cancel_requested_at is null and r.parent_run_id is null and r.also_awaited_by is null`
    const ends = sql`${dialect.rowsOf(p('ends'))} as e`
    // Each is looked up by its id: either database would rather go through all that are running for each of them.
    const found = dialect.runsOf(ends, tables.runs, field(0, 'text'))
    return sql`with held as materialized (select r.id as held_id from ${found} where ${and(fence, isUsual)})
      update ${tables.runs} as r set ${changes(context)}
      where ${dialect.isAmong(sql`r.id`, sql`select held_id from held`)} returning ${ANSWER}`
  })
}

const ANSWER = sql`id, status, last_event_sequence, wakes, cancel_requested_at`

function changes({ dialect }: SqlContext): Sql {
  return sql`status = 'completed', version = r.version + 1, commit_no = r.commit_no + 1, owner_id = null,
    lease_until = null, waiting_for = null, concurrency_slot = null, output = null, error = null, error_detail = null,
    finished_at = ${dialect.now}, heartbeat_at = ${dialect.now}, updated_at = ${dialect.now}`
}
