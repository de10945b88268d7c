import type { EndingEvents, EventTemplate, Firing } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { bindEvents, cancelStatements, type Change } from '../write'
import { and, type Sql, type SqlContext } from '../statement'

type FiredName = 'runIds' | 'ends' | 'fireToken'

/** Has runs end as a cancel does: each for a firing of its own schedule, if that has moved it. */
export function createMakeWay(context: SqlContext) {
  const { tables, dialect } = context
  // Rows are looked up by their ids alone: an index on what else is asked of them leads to all runs that wait.
  const asFilter = (condition: Sql) => sql`case when ${condition} then 1 end = 1`
  const isGiven = (p: (name: FiredName) => Sql) =>
    and(
      dialect.isAmong(sql`r.id`, sql`select value from ${dialect.listOf(p('runIds'))}`),
      asFilter(sql`(r.id || ' ' || coalesce(r.schedule_id, '')) in (select value from ${dialect.listOf(p('ends'))})`),
    )
  const isMoved = (p: (name: FiredName) => Sql) =>
    sql`(select s.fire_token from ${tables.schedules} as s where s.id = r.schedule_id) = ${p('fireToken')}`
  const statements = cancelStatements<FiredName>(context, (p) => and(isGiven(p), isMoved(p)), asFilter)

  /** None for no runs. */
  return function makeWay(
    firings: readonly Firing[],
    fireToken: string,
    events: EndingEvents,
  ): readonly CompiledQuery[] {
    const runIds = firings.flatMap(({ ends }) => ends)
    if (runIds.length === 0) return []
    const ends = firings.flatMap((firing) => firing.ends.map((runId) => `${runId} ${firing.scheduleId}`))
    const values = { runIds: JSON.stringify(runIds), ends: JSON.stringify(ends), fireToken }
    const apply = ({ event, update }: Change<FiredName>, told: readonly EventTemplate[]) => [
      ...bindEvents({ statement: event, events: told, after: 0, values }),
      update.bind({ ...values, eventCount: told.length, waitingFor: null, error: null, errorDetail: null }),
    ]
    return [
      ...apply(statements.requestCancel, events.requested),
      statements.wakeParentsOfCancelled.bind(values),
      ...apply(statements.cancel, events.cancelled),
    ]
  }
}
