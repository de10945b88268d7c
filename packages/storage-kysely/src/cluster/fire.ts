import type { EndingEvents, Firing, FiringAnswer, Lead } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { type Executor, isBusy } from '../connection'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import { createMakeWay } from './make-way'
import { createRunList } from './run-list'
import {
  and,
  assignments,
  type Row,
  rowsOf,
  type SqlContext,
  statement,
  toRun,
  valueOf,
  type WriteTarget,
} from '../statement'
import { createWriteLocked } from '../write'

/** One write of many firings. */
export interface FireOrder {
  readonly lead: Lead
  readonly firings: readonly Firing[]
  readonly events: EndingEvents
}

/** For who holds a run that is to make way only while writing to it. */
const PATIENCE_MS = 200
/** For what comes after one that has waited in vain: free or not, nothing more. */
const NO_PATIENCE_MS = 2

const BUSY: FiringAnswer = Object.freeze({ kept: false, isBusy: true, created: [], ended: [] })

/** On Postgres a run that somebody has locked holds up its own schedule, and with one writer the database is busy or is not. */
export function createFire(context: SqlContext) {
  const fireTogether = createFireTogether(context)

  /** One that is busy is found by halves, so that a few of them cost little among many. */
  async function fireWhatIsFree(executor: Executor, order: FireOrder, patienceMs: number): Promise<FiringAnswer[]> {
    try {
      return await fireTogether(executor.impatient, order, patienceMs)
    } catch (error) {
      if (!isBusy(error)) throw error
      if (order.firings.length === 1) return [BUSY]
      const answers: FiringAnswer[] = []
      for (const firings of halvesOf(order.firings)) {
        answers.push(...(await fireWhatIsFree(executor, { ...order, firings }, NO_PATIENCE_MS)))
      }
      return answers
    }
  }

  return (executor: Executor, order: FireOrder): Promise<FiringAnswer[]> => {
    const mayBeHeldUp = !context.dialect.hasOneWriter && order.firings.some(({ ends }) => ends.length > 0)
    return mayBeHeldUp ? fireWhatIsFree(executor, order, PATIENCE_MS) : fireTogether(executor, order)
  }
}

function halvesOf<T>(list: readonly T[]): readonly (readonly T[])[] {
  const middle = Math.ceil(list.length / 2)
  return [list.slice(0, middle), list.slice(middle)]
}

/** Moves many schedules on, creates their runs and has those end that make way: the runs of those that moved. */
function createFireTogether(context: SqlContext) {
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

  const makeWay = createMakeWay(context)
  const writeLocked = createWriteLocked(context, 'briefly')

  return async function fireTogether(
    target: WriteTarget,
    { lead, firings, events }: FireOrder,
    patienceMs?: number,
  ): Promise<FiringAnswer[]> {
    const all = firings.flatMap((firing) => firing.runs.map((run) => ({ run, cause: firing.scheduleId })))
    // Of this write alone, so that what an earlier one moved is not taken for moved by it.
    const fireToken = crypto.randomUUID()
    const ends = firings.flatMap((firing) => firing.ends)
    const [locks, creation] = [lock(lead), runs.bind(all, { fireToken })]
    const list = [
      ...locks,
      move.bind({ ...leadValues(lead), fireToken, firings: JSON.stringify(firings.map(valuesOf)) }),
      ...creation,
      ...makeWay(firings, fireToken, events),
    ]
    const results = await (ends.length === 0
      ? target.write(list)
      : writeLocked(target, { runIds: ends, patienceMs }, list))
    const [moved = [], ...rest] = results.slice(locks.length)
    const created = creation.length === 0 ? [] : (rest[0] ?? [])
    const ended = rest.slice(creation.length).flat().filter(isRun).map(toRun)
    const [movedIds, createdIds] = [moved, created].map((rows) => new Set(rows.map(({ id }) => id)))
    return firings.map(({ scheduleId, runs: wanted }) => ({
      kept: movedIds?.has(scheduleId) === true,
      created: wanted.filter(({ id }) => createdIds?.has(id)).map(({ id }) => id),
      ended: ended.filter((run) => run.scheduleId === scheduleId),
    }))
  }
}

/** Parents that were woken answer their ids only. */
function isRun(row: Row): boolean {
  return 'lease_epoch' in row
}

const FIRING_VALUES = ['scheduleId', 'version', 'firedUntil', 'nextAt', 'fired', 'missed'] as const

function valuesOf({ scheduleId, version, runs, firedUntil, nextAt, missed }: Firing) {
  return { scheduleId, version, firedUntil, nextAt, fired: runs.length, missed }
}
