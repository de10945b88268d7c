import { type Kysely, sql } from 'kysely'
import { z } from 'zod'
import type { WorkerConfig } from '../config'
import type { Tables } from '../database/tables'
import type { Log } from '../log'
import type { AnyTool } from '../tools/tool'

const EVERY_MS = 60_000

interface Household {
  readonly db: Kysely<Tables>
  readonly tools: readonly AnyTool[]
  readonly config: Pick<WorkerConfig, 'sessionDays'>
  readonly log: Log
}

/** Tells what this worker can call, and removes what has expired; any number of workers may. Answers how to end it. */
export async function lookAfter(household: Household): Promise<() => void> {
  const { db, tools, config, log } = household
  await tellTools(db, tools)
  const timer = setInterval(() => {
    Promise.all([tellTools(db, tools), removeExpired(db, config)]).catch((error) => {
      log('warn', 'housekeeping failed', { error: String(error) })
    })
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
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

/** Sessions that nobody has used for so long go with their messages and files; their runs go as ended runs do. */
export async function removeExpired(
  db: Kysely<Tables>,
  { sessionDays }: Pick<WorkerConfig, 'sessionDays'>,
): Promise<void> {
  await sql`delete from sessions where updated_at < now() - make_interval(days => ${sessionDays})`.execute(db)
  await sql`delete from staged_files where created_at < now() - interval '1 day'`.execute(db)
  await sql`delete from logins where expires_at < now()`.execute(db)
  await sql`delete from oauth_state where expires_at < now()`.execute(db)
  await sql`delete from rate_limits where expire < extract(epoch from now()) * 1000`.execute(db).catch(() => {})
}
