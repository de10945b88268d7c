import { type Kysely, sql } from 'kysely'
import { z } from 'zod'
import type { WorkerConfig } from '../config'
import type { Database } from '../database/open'
import type { Tables } from '../database/tables'
import type { Log } from '../log'
import { isUnused, removeExpiredSession, removeForgotten } from '../sessions/remove-session'
import { toolsOfOthers } from '../tools/known-tools'
import type { AnyTool } from '../tools/tool'

const EVERY_MS = 60_000

type Opened = Pick<Database, 'db' | 'durably'>

interface Household extends Opened {
  readonly tools: readonly AnyTool[]
  readonly config: Pick<WorkerConfig, 'sessionDays'>
  readonly log: Log
  /** Between two rounds. */
  readonly everyMs?: number
}

/** Tells what this worker can call, and removes what has expired; any number of workers may. Answers how to end it. */
export async function lookAfter(household: Household): Promise<() => void> {
  const { db, tools, config, log, everyMs = EVERY_MS } = household
  await tellTools(db, tools)
  await warnOfOthers(household)
  const timer = setInterval(() => {
    Promise.all([tellTools(db, tools), removeExpired(household, config)]).catch((error) => {
      log('warn', 'housekeeping failed', { error: String(error) })
    })
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** A run goes on wherever there is room, and is told no where its tool is missing. */
async function warnOfOthers({ db, tools, log }: Household): Promise<void> {
  const own = tools.map(({ name }) => name)
  const missing = await toolsOfOthers(db, own)
  if (missing.length > 0) log('warn', 'other workers have tools that this one has not', { tools: missing })
}

async function tellTools(db: Kysely<Tables>, tools: readonly AnyTool[]): Promise<void> {
  for (const { name, description, input, needsApproval, sideEffects } of tools) {
    const told = {
      description,
      input: JSON.stringify(z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })),
      needs_approval: needsApproval !== false,
      side_effects: sideEffects,
      seen_at: new Date(),
    }
    await db
      .insertInto('tools')
      .values({ name, ...told })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(told))
      .execute()
  }
}

const MOST_AT_ONCE = 100

/** Sessions that nobody has used for so long go, with all that belongs to them. */
export async function removeExpired(opened: Opened, { sessionDays }: Pick<WorkerConfig, 'sessionDays'>): Promise<void> {
  const { db } = opened
  const expired = await db
    .selectFrom('sessions')
    .where(isUnused(sessionDays))
    .select(['session_id as sessionId', 'user_id as userId'])
    .limit(MOST_AT_ONCE)
    .execute()
  for (const session of expired) await removeExpiredSession(opened, session, sessionDays)
  await removeForgotten(opened)
  await removeStaged(db)
  await sql`delete from logins where expires_at < now()`.execute(db)
  await sql`delete from oauth_state where expires_at < now()`.execute(db)
  await sql`delete from rate_limits where expire < extract(epoch from now()) * 1000`.execute(db)
}

/**
 * What a call has written outlives its result only where a start of it was lost. A run that waits, is parked, or has failed and
 * may be retried still comes to keep it: then it goes with its session.
 */
async function removeStaged(db: Kysely<Tables>): Promise<void> {
  const goingOn = sql`
    select from durably_runs as run
    where run.id = split_part(staged_files.call_key, '/', 1) and run.tenant = staged_files.user_id
      and run.status <> 'completed'`
  await sql`
    delete from staged_files where created_at < now() - interval '1 day' and not exists (${goingOn})`.execute(db)
}
