import { type Kysely, sql } from 'kysely'
import type { Tables } from '../database/tables'

/** Workers tell once a minute what they can call: a tool that none has told of for so long is not there any more. */
const TOLD_WITHIN = sql<Date>`now() - interval '5 minutes'`

/** What some worker can call. */
export function knownTools(db: Kysely<Tables>) {
  return db.selectFrom('tools').where('seen_at', '>', TOLD_WITHIN).orderBy('name')
}

/** What others can call, and who has only these cannot. */
export async function toolsOfOthers(db: Kysely<Tables>, own: readonly string[]): Promise<string[]> {
  const known = await knownTools(db).select('name').execute()
  return known.map(({ name }) => name).filter((name) => !own.includes(name))
}

interface Missing {
  readonly tool: string
  /** A call before this one was begun, and its outcome was lost. */
  readonly isRepeated: boolean
}

/** What the model, and who reads the chat, is told of a call that this worker cannot make. */
export async function troubleWithMissing(db: Kysely<Tables>, { tool, isRepeated }: Missing): Promise<string> {
  const found = await knownTools(db).where('name', '=', tool).select('name').executeTakeFirst()
  const done = isRepeated
    ? 'was not called again, and nobody knows whether the call before was carried out'
    : 'was not called, and nothing was done'
  if (found === undefined && !isRepeated) return `There is no tool "${tool}".`
  if (found === undefined) return `The tool "${tool}" ${done}: no worker has it any more.`
  return (
    `The tool "${tool}" ${done}: the worker that has this run now is without it, ` +
    'and another one has it, or had it minutes ago. All workers of a deployment need the same SANDBOX and FETCH_HOSTS.'
  )
}
