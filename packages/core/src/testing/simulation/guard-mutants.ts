import { type Guard, LIFECYCLE, type Lifecycle, type TransitionName } from '../../port'
import { SIMULATED_TRANSITIONS, STRUCK_TRANSITIONS } from './faults'

/** The table of transitions with one guard taken away. */
export interface GuardMutant {
  readonly transition: TransitionName
  readonly guard: Guard
  readonly lifecycle: Lifecycle
}

/** Every guard of every transition that somebody in the simulation asks for, taken away in turn. */
export function guardMutants(): readonly GuardMutant[] {
  return [...SIMULATED_TRANSITIONS, ...STRUCK_TRANSITIONS].flatMap((transition) =>
    (LIFECYCLE[transition].guards as readonly Guard[])
      .filter((guard) => !isImplied(transition, guard))
      .map((guard) => ({ transition, guard, lifecycle: without(transition, guard) })),
  )
}

/** Runs to purge are looked for among the ended ones only; nobody in the simulation pauses a job or limits it for all. */
function isImplied(transition: TransitionName, guard: Guard): boolean {
  return (transition === 'purge' && guard === 'status') || guard === 'paused' || guard === 'limits'
}

function without(transition: TransitionName, guard: Guard): Lifecycle {
  const { guards, ...rest } = LIFECYCLE[transition]
  const left = (guards as readonly Guard[]).filter((each) => each !== guard)
  return { ...LIFECYCLE, [transition]: { ...rest, guards: left } }
}

/** Why a transition is not simulated. The storage contract covers its guards. */
export const NOT_SIMULATED: Readonly<Partial<Record<TransitionName, string>>> = {
  archive:
    'needs an archive; the contract races it with all that ends runs, and processes are killed at each of its parts',
  assign: 'needs a leader: the cluster simulates it, and takes each of its guards away',
  start: 'needs a leader: the cluster simulates it, and takes each of its guards away',
  decline: 'needs a leader: the cluster simulates it, and takes each of its guards away',
  orphan: 'needs a leader: the cluster simulates it, and takes each of its guards away',
  free: 'needs a leader: the cluster simulates it, and takes each of its guards away',
}
