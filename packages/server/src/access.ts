import { type Actor, NotFoundError, type Durably, type Run, type ScopedDurably } from '@coji/durably-core'
import type { Asked, Granted, Settings } from './options'
import { HttpProblem } from './problem'
import { ACTIONS, type Action } from './wire'

/** What one request may see and do. */
export interface Access {
  readonly actor: string | null
  readonly tenant: string | null
  readonly actions: readonly Action[]
  /** The engine, or the part of it that is the tenant's. */
  readonly runs: ScopedDurably
}

/** Who is not asked who they are. Routes without an action look at nothing of it. */
export const NOBODY: Access = { actor: null, tenant: null, actions: [], runs: null as never }

export interface Door {
  readonly durably: Durably
  readonly settings: Settings
}

/** Whose runs may be seen, and whether the action is allowed at all. */
export async function admit({ durably, settings }: Door, asked: Omit<Asked, 'run'>): Promise<Access> {
  const granted = await settings.authorize({ ...asked, run: null })
  if (granted === null) throw new HttpProblem('UNAUTHENTICATED', 'Say who you are.')
  const { actor = null, tenant } = requireGranted(granted)
  const actions = actionsIn(granted)
  if (!actions.includes(asked.action)) throw forbidden(asked.action)
  return { actor, tenant, actions, runs: runsOf(durably, { actor, tenant }) }
}

/** Runs for one tenant or of all, in the name of who asks: what is done to them leaves who did it, where the storage keeps that. */
export function runsOf(durably: Durably, { actor, tenant }: Pick<Access, 'actor' | 'tenant'>): ScopedDurably {
  const named = namedAs(durably, actor)
  if (tenant !== null) return durably.scoped({ tenant, ...named })
  return named.as === undefined ? durably : durably.scoped({ as: named.as })
}

/** Who does it, where that is known and can be kept. */
export function namedAs({ storage }: Durably, actor: string | null): { readonly as?: Actor } {
  return actor === null || actor === '' || storage.audit === undefined ? {} : { as: { actor } }
}

/** Whether the action is allowed for this run. Who may not see it is told that there is none. */
export async function admitTo({ settings }: Door, asked: Asked & { readonly run: Run }): Promise<void> {
  const granted = await settings.authorize(asked)
  const { id, tenant } = asked.run
  if (granted === null || !isOwn(requireGranted(granted), tenant)) throw NotFoundError.run(id)
  if (!actionsIn(granted).includes(asked.action)) throw forbidden(asked.action)
}

function isOwn(granted: Granted, tenant: string): boolean {
  return granted.tenant === null || granted.tenant === tenant
}

/** A session without a tenant must not see everybody's runs. */
function requireGranted(granted: Granted): Granted {
  const { tenant } = Object(granted) as Granted
  if (tenant === null || typeof tenant === 'string') return granted
  // The mistake of the application, not of who asks.
  throw new TypeError('authorize() must answer with a tenant: a string, or null for the runs of everybody.')
}

function actionsIn({ allow }: Granted): readonly Action[] {
  if (allow === 'all') return ACTIONS
  if (allow === 'read') return ['read']
  if (!Array.isArray(allow)) throw new TypeError("authorize() must answer with allow: 'all', 'read' or a list.")
  return ACTIONS.filter((action) => allow.includes(action))
}

function forbidden(action: Action): HttpProblem {
  return new HttpProblem('FORBIDDEN', `You may not do this: it needs "${action}".`)
}
