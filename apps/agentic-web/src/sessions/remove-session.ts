import { ConflictError, ENDED_STATUSES, isEnded, NotFoundError, type RunStatus } from '@coji/durably'
import { sql, type Transaction } from 'kysely'
import { AGENT_JOB, SESSION_LABEL } from '../agent/declaration'
import type { Database } from '../database/open'
import type { Tables } from '../database/tables'

export interface Whose {
  readonly userId: string
  readonly sessionId: string
}

type Opened = Pick<Database, 'db' | 'durably'>

/** The runs of a session, newest first. */
export function runsOf({ durably }: Pick<Opened, 'durably'>, { userId, sessionId }: Whose) {
  return durably.scoped({ tenant: userId }).getRuns({ jobName: AGENT_JOB, labels: { [SESSION_LABEL]: sessionId } })
}

/** What is going on in it is cancelled; what was said, files and runs go with it. */
export async function removeSession(opened: Opened, { userId, sessionId }: Whose): Promise<void> {
  await opened.db.transaction().execute(async (trx) => {
    // A message that comes now waits for this, and finds no session, or has come before and is among the runs.
    await trx.deleteFrom('sessions').where('session_id', '=', sessionId).where('user_id', '=', userId).execute()
    await forgetRuns(trx, { userId, sessionId })
  })
  await removeForgotten(opened, userId)
}

/** Removes it if nobody has used it for so long, and nothing goes on or waits in it. */
export async function removeExpiredSession(opened: Opened, { userId, sessionId }: Whose, days: number): Promise<void> {
  const isGone = await opened.db.transaction().execute(async (trx) => {
    const gone = await trx
      .deleteFrom('sessions')
      .where('session_id', '=', sessionId)
      .where('user_id', '=', userId)
      .where(isUnused(days))
      .executeTakeFirst()
    if (gone.numDeletedRows === 0n) return false
    await forgetRuns(trx, { userId, sessionId })
    return true
  })
  if (isGone) await removeForgotten(opened, userId)
}

/** One in which something waits for a person is in use. */
export function isUnused(days: number) {
  const goingOn = sql`
    select from durably_run_labels as label join durably_runs as run on run.id = label.run_id
    where label.tenant = sessions.user_id and label.name = ${SESSION_LABEL} and label.value = sessions.session_id
      and run.tenant = sessions.user_id and not run.status = any(${ENDED_STATUSES}::text[])`
  return sql<boolean>`sessions.updated_at < now() - make_interval(days => ${days}) and not exists (${goingOn})`
}

/** A run that is being executed ends a little later: it is not forgotten that it is to go. */
async function forgetRuns(trx: Transaction<Tables>, { userId, sessionId }: Whose): Promise<void> {
  await sql`
    insert into forgotten_runs (run_id, user_id)
    select run.id, run.tenant from durably_run_labels as label join durably_runs as run on run.id = label.run_id
    where label.tenant = ${userId} and label.name = ${SESSION_LABEL} and label.value = ${sessionId}
      and run.tenant = ${userId} and run.job_name = ${AGENT_JOB}
    on conflict do nothing`.execute(trx)
}

/** Removes runs of sessions that are gone, as far as they have ended, and has the others end. */
export async function removeForgotten({ db, durably }: Opened, userId?: string): Promise<void> {
  let query = db.selectFrom('forgotten_runs').select(['run_id', 'user_id']).limit(MOST_AT_ONCE)
  if (userId !== undefined) query = query.where('user_id', '=', userId)
  for (const { run_id, user_id } of await query.execute()) {
    const mine = durably.scoped({ tenant: user_id })
    const run = await mine.getRun(run_id)
    if (run !== null && !isEnded(run.status)) {
      const { status } = await mine.cancel(run_id).catch(unlessEnded)
      if (!isEnded(status)) continue
    }
    if (run !== null && !(await isRemoved(mine.deleteRun(run_id)))) continue
    await db.deleteFrom('forgotten_runs').where('run_id', '=', run_id).where('user_id', '=', user_id).execute()
  }
}

/** It has ended by itself meanwhile, or is gone. */
function unlessEnded(error: unknown): { readonly status: RunStatus } {
  if (error instanceof ConflictError || error instanceof NotFoundError) return { status: 'cancelled' }
  throw error
}

/** Another process may do the same; one that cannot go yet keeps no other from going. */
async function isRemoved(removal: Promise<unknown>): Promise<boolean> {
  try {
    await removal
    return true
  } catch (error) {
    if (error instanceof NotFoundError) return true
    if (error instanceof ConflictError) return false
    throw error
  }
}

const MOST_AT_ONCE = 500
