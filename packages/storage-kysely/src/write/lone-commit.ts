import type { CommitAnswer, RunCommit } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import {
  keepChanges,
  type LeaseName,
  overwriteStep,
  type RunName,
  stepColumns,
  type StepName,
  keepValues,
  kept,
  stepValues,
} from './commit-columns'
import { assignments, holds, list, namesOf, type SqlContext, statement, type WriteTarget } from '../statement'
import { patience, type PatienceName } from './row-locks'

type LoneCommit = (target: WriteTarget, commit: RunCommit, patienceMs: number) => Promise<CommitAnswer | null>

/** Whether a commit is one step of a run that goes on, and nothing else: most of them are. */
export function isLone({ steps, children, logs, events, consumedSignals, outcome }: RunCommit): boolean {
  const isStepAlone = steps.length === 1 && steps[0]?.child === null && outcome === null
  return isStepAlone && children.length + logs.length + events.length + consumedSignals.length === 0
}

/**
 * For Postgres: such a commit as a statement of its own, which costs a third of that for any number of runs. The update
 * waits for the row and looks at its guard once it has it; the step is stored if it was kept. `null` where it was not.
 */
export function createLoneCommit(context: SqlContext): LoneCommit {
  const lone = loneStatement(context)
  return async (target, commit, patienceMs) => {
    const { lease, commitNo, steps } = commit
    const [step] = steps
    if (step === undefined) return null
    const values = { ...stepValues(step), ...keepValues(commit), ...lease, commitNo, ...patience(patienceMs) }
    const [[row] = []] = await target.write([lone.bind(values)])
    return row === undefined ? null : kept(row, [])
  }
}

function loneStatement(context: SqlContext) {
  const { tables, dialect, fences } = context
  return statement<StepName | RunName | LeaseName | PatienceName>(context, (p) => {
    const columns = stepColumns(context, p, p('output'))
    const fence = holds(fences, dialect, {
      runId: p('runId'),
      epoch: p('epoch'),
      token: p('token'),
      leaderEpoch: p('leaderEpoch'),
      commitNo: p('commitNo'),
    })
    return sql`with told as materialized (select set_config('lock_timeout', ${p('patience')}, true)),
      kept as (
        update ${tables.runs} as r set ${assignments(keepChanges(context, p))} from told where ${fence} returning r.*),
      stored as (
        insert into ${tables.steps} as s (${namesOf(columns)}) select ${list(...Object.values(columns))} from kept as r
        ${overwriteStep(columns)})
      select status, last_event_sequence, wakes, cancel_requested_at from kept`
  })
}
