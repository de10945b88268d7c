import type { Assignment, Lead } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { type Executor, isConstraintError } from '../connection'
import { bindEvents, createWriteLocked, eventStatement, freeSlot, slotsTaken } from '../write'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import { and, assignments, rowsOf, type Sql, type SqlContext, statement, valueOf } from '../statement'

/** A claim of the same key may take a slot between the look and the write. */
const MOST_TRIES = 5

const NEEDS_NO_SLOT = sql`(r.concurrency_key is null or r.concurrency_slot is not null)`

type OneName = 'runId' | 'version' | LeadName
type Parameter<TName extends string> = (name: TName) => Sql

/** Those without a key by one statement; those with one by a statement each, for it sees the slots of those before. */
export function createAssign(context: SqlContext) {
  const { tables } = context
  const lock = createLeadLock(context)
  const writeLocked = createWriteLocked(context)
  const one = (p: Parameter<OneName>) =>
    and(sql`r.id = ${p('runId')}`, guardOf(context, p, p('version')), slotFence(context))
  const event = eventStatement<OneName>(context, one)
  const keyless = statement<'assignments' | LeadName>(context, (p) => {
    const value = valueOf(context, 't')
    const guard = and(sql`r.id = ${value('runId')}`, guardOf(context, p, value('version')), NEEDS_NO_SLOT)
    const sets = changes(context, { workerId: value('workerId'), epoch: p('epoch'), eventCount: value('eventCount') })
    return sql`update ${tables.runs} as r set ${assignments(sets)}
      from ${rowsOf(context, p('assignments'), ['runId', 'version', 'workerId', 'eventCount'])} where ${guard} returning id`
  })
  const keyed = statement<'workerId' | 'eventCount' | OneName>(context, (p) => {
    const changed = changes(context, { workerId: p('workerId'), epoch: p('epoch'), eventCount: p('eventCount') })
    const sets = { ...changed, concurrency_slot: sql`${freeSlot(context)}` }
    return sql`update ${tables.runs} as r set ${assignments(sets)}
      where ${one(p)} and not ${NEEDS_NO_SLOT}${keyIsMine(context)} returning id`
  })

  function bind(lead: Lead, all: readonly Assignment[]): CompiledQuery[] {
    const values = leadValues(lead)
    const rows = all.map(({ runId, version, workerId, events }, n) => {
      return { n, runId, version, workerId, eventCount: events.length }
    })
    const told = all.flatMap(({ runId, version, events }) =>
      bindEvents({ statement: event, events, after: 0, values: { ...values, runId, version } }),
    )
    const each = rows
      .filter((_row, index) => all[index]?.takesSlot !== false)
      .map(({ n: _n, ...row }) => keyed.bind({ ...values, ...row }))
    return [...told, keyless.bind({ ...values, assignments: JSON.stringify(rows) }), ...each]
  }

  return async function assign(executor: Executor, lead: Lead, all: readonly Assignment[]): Promise<boolean[]> {
    const touched = { runIds: all.map(({ runId }) => runId) }
    for (let tries = 1; ; tries++) {
      try {
        const results = await writeLocked(executor, touched, [...lock(lead), ...bind(lead, all)])
        const made = new Set(results.flat().map(({ id }) => id))
        return all.map(({ runId }) => made.has(runId))
      } catch (error) {
        if (!isConstraintError(error) || tries === MOST_TRIES) throw error
      }
    }
  }
}

function guardOf(context: SqlContext, p: Parameter<LeadName>, version: Sql): Sql {
  const { fences } = context
  return and(fences['assign.status'](), fences['assign.version'](version), fences['assign.lead'](isLeading(context, p)))
}

function slotFence(context: SqlContext): Sql {
  return sql`(r.concurrency_key is null or ${context.fences['assign.slot'](slotsTaken(context, 'r'))})`
}

interface Change {
  readonly workerId: Sql
  readonly epoch: Sql
  readonly eventCount: Sql
}

function changes({ dialect }: SqlContext, { workerId, epoch, eventCount }: Change): Readonly<Record<string, Sql>> {
  return {
    status: sql`'assigned'`,
    version: sql`r.version + 1`,
    assignments: sql`r.assignments + 1`,
    assigned_worker_id: workerId,
    assigned_at: dialect.now,
    leader_epoch: epoch,
    waiting_for: sql`null`,
    updated_at: dialect.now,
    last_event_sequence: sql`r.last_event_sequence + ${eventCount}`,
  }
}

/** Who claims from a key keeps others away from it for a moment, as this does where somebody else may write. */
function keyIsMine({ dialect, prefix }: SqlContext): Sql {
  if (dialect.hasOneWriter) return sql``
  return sql` and pg_try_advisory_xact_lock(hashtext(${sql.lit(`${prefix}slots`)}), hashtext(r.tenant || '/' || r.concurrency_key))`
}
