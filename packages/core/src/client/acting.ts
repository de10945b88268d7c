import { InvalidOptionError, refuseBadText, refuseUnknownOptions } from '../base'
import type { Engine } from '../engine'
import { type AuditNote, capability } from '../port'

/** Somebody who does something. */
export interface Actor {
  /** A name, an address, an id: whatever tells people who it was. */
  readonly actor: string
}

/** How something is done to a run. */
export interface CommandOptions {
  /** Who does it: kept with what was before and what is after, for `getAudit()`. Nothing is kept without it. */
  readonly as?: Actor | undefined
}

/** What a command carries into the storage when somebody said who does it. */
export type Noted = { readonly audit?: AuditNote }

export function notedBy(engine: Engine, action: string, as: Actor | undefined): Noted {
  if (as === undefined) return {}
  capability(engine.storage, 'audit', 'as')
  return { audit: { id: engine.environment.createId(), actor: requireActor(as), action } }
}

export function requireActor(as: Actor): string {
  refuseUnknownOptions('as', as, { actor: true })
  const { actor } = as
  if (typeof actor !== 'string' || actor === '') throw new InvalidOptionError('as needs an actor that is a text.')
  refuseBadText('The actor', actor)
  return actor
}

/** Options of a call that takes no others. */
export function actorIn(call: string, options: CommandOptions, inherited: Actor | undefined): Actor | undefined {
  refuseUnknownOptions(call, options, { as: true })
  return options.as ?? inherited
}
