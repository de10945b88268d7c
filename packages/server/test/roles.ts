import { ACTIONS, type Granted } from '../src'
import type { Route } from '../src/route'

type Roles = Readonly<Record<string, Granted | null>>

/** Who may ask. What they ask about is of the tenant `acme`, unless it says otherwise. */
export const FEW_ROLES: Roles = {
  nobody: null,
  reader: { tenant: 'acme', allow: 'read' },
  owner: { tenant: 'acme', allow: 'all' },
  operator: { tenant: null, allow: 'all' },
  stranger: { tenant: 'other', allow: 'all' },
  'without tenant': { tenant: '', allow: 'all' },
  'may nothing': { tenant: 'acme', allow: [] },
}

/** Those, and who may do a single thing. */
export const ROLES: Roles = {
  ...FEW_ROLES,
  ...Object.fromEntries(ACTIONS.map((action) => [`may ${action}`, { tenant: 'acme', allow: [action] }])),
  ...Object.fromEntries(
    ACTIONS.map((action) => [`may read and ${action}`, { tenant: 'acme', allow: ['read', action] }]),
  ),
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function may({ allow }: Granted, action: Route['action']): boolean {
  if (action === null) return true
  return allow === 'all' || (allow === 'read' ? action === 'read' : allow.includes(action))
}

/** Of runs that belong to it. */
export function sees({ tenant }: Granted, owner: string): boolean {
  return tenant === null || tenant === owner
}
