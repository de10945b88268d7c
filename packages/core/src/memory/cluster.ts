import type { ClusterStorage } from '../port'
import type { Memory } from './memory'
import { createInbox } from './inbox'
import { createPlacement } from './placement'
import { createSchedules } from './schedules'

/** One look at the clock, then all of it at once. */
export interface Operations {
  read<T>(look: () => T): Promise<T>
  write<T>(apply: () => T): Promise<T>
}

export function createCluster(memory: Memory, { read, write }: Operations): ClusterStorage {
  const { leads, clock } = memory
  return {
    lead: (params) => write(() => leads.take(params, clock)),
    resign: (lead) => write(() => leads.resign(lead, clock)),
    getLead: (name) => read(() => leads.get(name, clock)),
    schedules: createSchedules(memory, { read, write }),
    inbox: createInbox(memory, { read, write }),
    placement: createPlacement(memory, { read, write }),
  }
}
