import type { Outcome, RunStatus } from '@coji/durably-core'
import { sql } from 'kysely'
import type { Sql, SqlContext, SqlValue } from './statement'
import { toJson } from './rows'

type OutcomeKind = Outcome['kind']

/** The values an outcome brings. Each kind uses those it needs; the rest is `null`. */
export type OutcomeName = 'output' | 'error' | 'errorDetail' | 'delayMs' | 'waitingFor' | 'wakesSeen'

type Parameter = (name: OutcomeName) => Sql

interface OutcomeRule {
  readonly status: RunStatus
  /** What changes on the row `r` beside what every holder leaves behind. */
  sets(context: SqlContext, p: Parameter): Readonly<Record<string, Sql>>
}

const failed = (status: RunStatus): OutcomeRule => ({
  status,
  sets: (_context, p) => ({ error: p('error'), error_detail: p('errorDetail') }),
})

/** Where each outcome leads when the flag to cancel is not set. */
export const OUTCOMES: Readonly<Record<OutcomeKind, OutcomeRule>> = {
  complete: {
    status: 'completed',
    sets: (_context, p) => ({ output: p('output'), error: sql`null`, error_detail: sql`null` }),
  },
  fail: failed('failed'),
  timeOut: failed('timed_out'),
  cancelled: { status: 'cancelled', sets: () => ({}) },
  retryLater: {
    status: 'pending',
    sets: ({ dialect }, p) => ({
      attempt: sql`r.attempt + 1`,
      waiting_for: sql`'{"kind":"retry"}'`,
      available_at: noLaterThanDeadline(dialect.nowPlus(p('delayMs')), dialect.least),
      error: p('error'),
      error_detail: p('errorDetail'),
    }),
  },
  suspend: {
    status: 'pending',
    sets: (context, p) => ({
      waiting_for: p('waitingFor'),
      available_at: sql`case when r.wakes <> ${p('wakesSeen')} then r.created_at else ${firstDue(context)} end`,
    }),
  },
  release: { status: 'pending', sets: () => ({ available_at: sql`r.created_at`, waiting_for: sql`null` }) },
  park: { status: 'pending', sets: (_context, p) => ({ available_at: sql`null`, waiting_for: p('waitingFor') }) },
}

function noLaterThanDeadline(instant: Sql, least: (a: Sql, b: Sql) => Sql): Sql {
  return sql`case when r.deadline_at is null then ${instant} else ${least(instant, sql`r.deadline_at`)} end`
}

/** The earliest instant a waiting step or the deadline brings; `null` without any. */
function firstDue({ tables }: SqlContext): Sql {
  return sql`(select min(w.due_at) from (
    select s.due_at from ${tables.steps} as s where s.run_id = r.id and s.status = 'waiting' union all select r.deadline_at
  ) as w)`
}

export function outcomeValues(outcome: Outcome | null): Record<OutcomeName, SqlValue> {
  const values: Record<OutcomeName, SqlValue> = {
    ...{ output: null, error: null, errorDetail: null, delayMs: null, waitingFor: null, wakesSeen: null },
  }
  switch (outcome?.kind) {
    case 'complete':
      return { ...values, output: outcome.output }
    case 'fail':
    case 'timeOut':
      return { ...values, error: outcome.error, errorDetail: toJson(outcome.detail) }
    case 'retryLater': {
      const { error, detail, delayMs } = outcome
      return { ...values, error, errorDetail: toJson(detail), delayMs }
    }
    case 'suspend':
      return { ...values, waitingFor: toJson({ kind: 'steps', steps: outcome.steps }), wakesSeen: outcome.wakesSeen }
    case 'park':
      return { ...values, waitingFor: toJson({ kind: 'unpark', reason: outcome.reason }) }
    default:
      return values
  }
}
