import type { Guard, Lifecycle, TransitionName } from '../port'
import type { RunStatus } from '../base'

/** The table of transitions as questions. A guard the table does not list is not asked for, so it cannot be hidden here. */
export interface Rules {
  asks(transition: TransitionName, guard: Guard): boolean
  allows(transition: TransitionName, guard: Guard, check: () => boolean): boolean
  allowsFrom(transition: TransitionName, status: RunStatus): boolean
  /** Whether only running runs can pass, so that nothing else has to be looked at. */
  concernsRunningOnly(transition: TransitionName): boolean
}

export function createRules(lifecycle: Lifecycle): Rules {
  const asks = (transition: TransitionName, guard: Guard) => lifecycle[transition].guards.includes(guard)
  return {
    asks,
    allows: (transition, guard, check) => !asks(transition, guard) || check(),
    allowsFrom: (transition, status) => !asks(transition, 'status') || lifecycle[transition].from.includes(status),
    concernsRunningOnly: (transition) =>
      asks(transition, 'status') && lifecycle[transition].from.every((status) => status === 'running'),
  }
}
