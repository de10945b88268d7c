import type { Firing, FiringAnswer, Lead } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import { createRunList } from './run-list'
import { and, assignments, rowsOf, type SqlContext, statement, valueOf, type WriteTarget } from '../statement'

/** Moves many schedules on and creates their runs: the runs of those that moved. */
export function createFire(context: SqlContext) {
  const { tables, dialect, fences } = context
  const lock = createLeadLock(context)
  const move = statement<'firings' | 'fireToken' | LeadName>(context, (p) => {
    const value = valueOf(context, 't')
    const sets = {
      version: sql`s.version + 1`,
      fired_until: value('firedUntil'),
      next_at: value('nextAt'),
      due_at: value('nextAt'),
      ended_at: sql`case when ${value('nextAt')} is null then ${dialect.now} end`,
      fired: sql`s.fired + ${value('fired')}`,
      missed: sql`s.missed + ${value('missed')}`,
      fire_token: p('fireToken'),
      updated_at: dialect.now,
    }
    const isAsRead = fences['fire.version'](value('version'))
    const guard = and(sql`s.id = ${value('scheduleId')}`, isAsRead, fences['fire.lead'](isLeading(context, p)))
    return sql`update ${tables.schedules} as s set ${assignments(sets)}
      from ${rowsOf(context, p('firings'), FIRING_VALUES)} where ${guard} returning id`
  })
  const runs = createRunList<'fireToken'>(
    context,
    (cause, p) => sql`(select s.fire_token from ${tables.schedules} as s where s.id = ${cause}) = ${p('fireToken')}`,
  )

  return async function fire(target: WriteTarget, lead: Lead, firings: readonly Firing[]): Promise<FiringAnswer[]> {
    const all = firings.flatMap((firing) => firing.runs.map((run) => ({ run, cause: firing.scheduleId })))
    // Of this write alone, so that what an earlier one moved is not taken for moved by it.
    const fireToken = crypto.randomUUID()
    const locks = lock(lead)
    const results = await target.write([
      ...locks,
      move.bind({ ...leadValues(lead), fireToken, firings: JSON.stringify(firings.map(valuesOf)) }),
      ...runs.bind(all, { fireToken }),
    ])
    const [moved = [], created = []] = results.slice(locks.length)
    const [movedIds, createdIds] = [moved, created].map((rows) => new Set(rows.map(({ id }) => id)))
    return firings.map(({ scheduleId, runs: wanted }) => ({
      kept: movedIds?.has(scheduleId) === true,
      created: wanted.filter(({ id }) => createdIds?.has(id)).map(({ id }) => id),
    }))
  }
}

const FIRING_VALUES = ['scheduleId', 'version', 'firedUntil', 'nextAt', 'fired', 'missed'] as const

function valuesOf({ scheduleId, version, runs, firedUntil, nextAt, missed }: Firing) {
  return { scheduleId, version, firedUntil, nextAt, fired: runs.length, missed }
}
