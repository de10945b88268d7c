import type { Actor } from '@coji/durably-core'
import { type Access, namedAs } from './access'
import { HttpProblem } from './problem'
import type { Call } from './route'

/** Whose schedules or messages. */
export interface ServedScope {
  readonly tenant?: string | undefined
}

/** Whose it is, and who does something to it. */
export interface ServedCommandScope extends ServedScope {
  readonly as?: Actor | undefined
}

export function isForeign(access: Access, tenant: string | undefined): boolean {
  return access.tenant !== null && tenant !== undefined && tenant !== access.tenant
}

export function scopeOf(access: Access, tenant: string | undefined): { readonly tenant?: string } {
  const own = access.tenant ?? tenant
  return own === undefined ? {} : { tenant: own }
}

/** Whose name it is. What belongs to others is not there. */
export function ownScope(access: Access, tenant: string | undefined): { readonly tenant?: string } {
  if (!isForeign(access, tenant)) return scopeOf(access, tenant)
  throw new HttpProblem('NOT_FOUND', 'There is nothing of that name.')
}

/** The same in the name of who asks. */
export function commandScope({ access, server }: Pick<Call, 'access' | 'server'>, tenant: string | undefined) {
  return { ...ownScope(access, tenant), ...namedAs(server.durably, access.actor) }
}

/** Which no name has that is encoded. */
const SEPARATOR = '/'

export function placeOf(first: string, second: string): string {
  return [first, second].map(encodeURIComponent).join(SEPARATOR)
}

export function placeIn(cursor: string): readonly [string, string] {
  try {
    const [first, second] = cursor.split(SEPARATOR).map(decodeURIComponent)
    if (first !== undefined && second !== undefined) return [first, second]
  } catch {}
  throw new HttpProblem('INVALID_REQUEST', 'cursor must be the `next` of the page before.')
}
