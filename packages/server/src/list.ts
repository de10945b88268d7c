import type { Run, RunCursor } from '@coji/durably-core'
import type { z } from 'zod'
import { HttpProblem } from './problem'
import type { Call } from './route'
import type { Settings } from './options'
import type { runListQuerySchema } from './wire'

/** So many where nobody says how many. */
const PAGE = 50

/** `GET /runs`: a page, and where the next one begins. */
export async function listRuns({ access, server, query }: Call<z.output<typeof runListQuerySchema>>) {
  const { cursor, limit, ...filter } = query
  const size = limit === undefined ? Math.min(PAGE, server.settings.maxPageSize) : sizeOf(limit, server.settings)
  // Whose runs one sees is for the tenant to say, and whose one asks for is another matter.
  const isForeign = access.tenant !== null && filter.tenant !== undefined && filter.tenant !== access.tenant
  const place = cursor === undefined ? {} : { cursor: toCursor(cursor) }
  const runs = isForeign ? [] : await access.runs.getRuns({ ...filter, ...place, limit: size + 1 })
  const page = runs.slice(0, size)
  return { runs: page.map((run) => server.present.run(run)), next: runs.length > size ? placeOf(page.at(-1)) : null }
}

export function sizeOf(limit: number, { maxPageSize }: Pick<Settings, 'maxPageSize'>): number {
  if (limit >= 1 && limit <= maxPageSize) return limit
  throw new HttpProblem('INVALID_REQUEST', `limit must be from 1 to ${maxPageSize}.`)
}

const SEPARATOR = '~'

function placeOf(run: Run | undefined): string | null {
  return run === undefined ? null : `${run.createdAt}${SEPARATOR}${run.id}`
}

/** The engine says so of what is no cursor. */
function toCursor(text: string): RunCursor | string {
  const [createdAt, id] = text.split(SEPARATOR)
  return createdAt === undefined || id === undefined ? text : { createdAt, id }
}
