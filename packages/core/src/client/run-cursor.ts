import { InvalidOptionError, isInstant } from '../base'
import type { RunCursor, Scope, Storage } from '../port'

/** The place where the next page begins. A run says itself where it was; an id has to be looked up. */
export async function toCursor(storage: Storage, cursor: unknown, { tenant }: Scope): Promise<RunCursor> {
  if (typeof cursor !== 'string') return placeOf(cursor)
  const run = await storage.getRun(cursor, tenant === undefined ? {} : { tenant })
  if (run !== null) return { createdAt: run.createdAt, id: run.id }
  throw new InvalidOptionError(
    `There is no run ${cursor} (any more) for the cursor. Start again without one, or give the run itself.`,
  )
}

function placeOf(run: unknown): RunCursor {
  const { createdAt, id } = Object(run) as Readonly<Record<keyof RunCursor, unknown>>
  if (typeof id === 'string' && isInstant(createdAt)) return { createdAt, id }
  throw new InvalidOptionError('cursor must be the last run of the page before, or its id.')
}
