import type { Outcome, RunStatus } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { SqlDialect } from '../dialect'
import { type Sql, type SqlValue, toJson, wokenAt } from '../statement'

type OutcomeKind = Outcome['kind']

/** The values an outcome brings. Each kind uses those it needs; the rest is `null`. */
export type OutcomeName = 'output' | 'error' | 'errorDetail' | 'delayMs' | 'waitingFor' | SuspendName

type SuspendName = 'wakesSeen' | 'wakesWanted' | 'restMs' | 'awaited'

/** What the rules are made from. */
interface OutcomeTerms {
  readonly dialect: SqlDialect
  /** The values of the outcome. */
  readonly value: (name: OutcomeName) => Sql
  /** The instants at which the waits of the run `r` end. */
  readonly waitsEnd: Sql
  /** How often it was woken, the write itself included. */
  readonly wakes: Sql
}

interface OutcomeRule {
  readonly status: RunStatus
  /** What changes on the row `r` beside what every holder leaves behind. */
  sets(terms: OutcomeTerms): Readonly<Record<string, Sql>>
}

const failed = (status: RunStatus): OutcomeRule => ({
  status,
  sets: ({ value }) => ({ error: value('error'), error_detail: value('errorDetail') }),
})

/** Where each outcome leads when the flag to cancel is not set. */
export const OUTCOMES: Readonly<Record<OutcomeKind, OutcomeRule>> = {
  complete: {
    status: 'completed',
    sets: ({ value }) => ({ output: value('output'), error: sql`null`, error_detail: sql`null` }),
  },
  fail: failed('failed'),
  timeOut: failed('timed_out'),
  cancelled: { status: 'cancelled', sets: () => ({}) },
  retryLater: {
    status: 'pending',
    sets: ({ dialect, value }) => ({
      attempt: sql`r.attempt + 1`,
      waiting_for: sql`'{"kind":"retry"}'`,
      available_at: noLaterThanDeadline(dialect.nowPlus(value('delayMs')), dialect.least),
      error: value('error'),
      error_detail: value('errorDetail'),
    }),
  },
  suspend: {
    status: 'pending',
    sets: (terms) => ({
      waiting_for: terms.value('waitingFor'),
      available_at: suspendedUntil(terms),
      wakes_wanted: terms.value('wakesWanted'),
      rest_until: restEnd(terms),
    }),
  },
  release: { status: 'pending', sets: () => ({ available_at: sql`r.created_at`, waiting_for: sql`null` }) },
  park: { status: 'pending', sets: ({ value }) => ({ available_at: sql`null`, waiting_for: value('waitingFor') }) },
}

function noLaterThanDeadline(instant: Sql, least: (a: Sql, b: Sql) => Sql): Sql {
  return sql`case when r.deadline_at is null then ${instant} else ${least(instant, sql`r.deadline_at`)} end`
}

function restEnd({ dialect, value }: OutcomeTerms): Sql {
  return sql`case when ${value('restMs')} <> 0 then ${dialect.nowPlus(value('restMs'))} end`
}

function suspendedUntil(terms: OutcomeTerms): Sql {
  const { dialect, value, waitsEnd, wakes } = terms
  const end = earliest(waitsEnd)
  const seen = value('wakesSeen')
  const rested = wokenAt(dialect, {
    ...{ createdAt: sql`r.created_at`, availableAt: end, wakes },
    ...{ wakesWanted: value('wakesWanted'), restUntil: restEnd(terms) },
  })
  return sql`case when ${wakes} = ${seen} then ${end} when r.last_signal > ${seen} then r.created_at else ${rested} end`
}

/** Of the waits and the deadline; `null` without any. */
function earliest(waitsEnd: Sql): Sql {
  return sql`(select min(w.due_at) from (${waitsEnd} union all select r.deadline_at) as w)`
}

export function outcomeValues(outcome: Outcome | null): Record<OutcomeName, SqlValue> {
  const values: Record<OutcomeName, SqlValue> = {
    ...{ output: null, error: null, errorDetail: null, delayMs: null, waitingFor: null, wakesSeen: null },
    ...{ wakesWanted: null, restMs: null, awaited: '[]' },
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
    case 'suspend': {
      const { steps, wakesSeen, wakesWanted, restMs } = outcome
      const waitingFor = toJson({ kind: 'steps', steps })
      return { ...values, waitingFor, wakesSeen, wakesWanted, restMs, awaited: JSON.stringify(steps) }
    }
    case 'park':
      return { ...values, waitingFor: toJson({ kind: 'unpark', reason: outcome.reason }) }
    default:
      return values
  }
}
