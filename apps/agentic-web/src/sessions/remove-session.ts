import { isEnded } from '@coji/durably'
import { AGENT_JOB, SESSION_LABEL } from '../agent/declaration'
import type { Database } from '../database/open'

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
export async function removeSession(opened: Opened, whose: Whose): Promise<void> {
  const { db, durably } = opened
  const { userId: user_id, sessionId } = whose
  const mine = durably.scoped({ tenant: user_id })
  const runs = await runsOf(opened, whose)
  const going = runs.filter(({ status }) => !isEnded(status))
  // A run that is being executed ends a little later: it is not forgotten that it is to go.
  const forgotten = runs.map(({ id }) => ({ run_id: id, user_id }))
  if (forgotten.length > 0) {
    await db
      .insertInto('forgotten_runs')
      .values(forgotten)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  }
  for (const { id } of going) await mine.cancel(id).catch(() => {})
  await db.deleteFrom('sessions').where('session_id', '=', sessionId).where('user_id', '=', user_id).execute()
  await removeForgotten(opened, user_id)
}

/** Removes runs of sessions that are gone, as far as they have ended. */
export async function removeForgotten({ db, durably }: Opened, userId?: string): Promise<void> {
  let query = db.selectFrom('forgotten_runs').select(['run_id', 'user_id']).limit(MOST_AT_ONCE)
  if (userId !== undefined) query = query.where('user_id', '=', userId)
  for (const { run_id, user_id } of await query.execute()) {
    const mine = durably.scoped({ tenant: user_id })
    const run = await mine.getRun(run_id)
    if (run !== null && !isEnded(run.status)) continue
    // Another process may do the same.
    if (run !== null) await mine.deleteRun(run_id).catch(() => {})
    await db.deleteFrom('forgotten_runs').where('run_id', '=', run_id).where('user_id', '=', user_id).execute()
  }
}

const MOST_AT_ONCE = 500
