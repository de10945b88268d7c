import { type Guard, LIFECYCLE, type TransitionName } from '../../port'
import { createMemoryStorageWith, type MemoryStorage, type MemoryStorageOptions } from '../../memory/memory-storage'

/** A guard of the lifecycle by its place in the table. */
export interface GuardPlace {
  readonly transition: TransitionName
  readonly guard: Guard
}

/** A storage that does not ask for one guard: a simulation of anything that builds upon it has to find that out. */
export function createStorageWithout(
  { transition, guard }: GuardPlace,
  options: MemoryStorageOptions = {},
): MemoryStorage {
  const guards = (LIFECYCLE[transition].guards as readonly Guard[]).filter((each) => each !== guard)
  const lifecycle = { ...LIFECYCLE, [transition]: { ...LIFECYCLE[transition], guards } }
  return createMemoryStorageWith({ ...options, lifecycle })
}
