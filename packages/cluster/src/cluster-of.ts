import { CapabilityMissingError, type Durably } from '@coji/durably-core'
import type { ClusterStorage } from '@coji/durably-core/storage'

/** The group of the storage that schedules and messages need. */
export function clusterOf({ storage }: Durably, wanted: string): ClusterStorage {
  if (storage.cluster === undefined) throw new CapabilityMissingError('cluster', wanted)
  return storage.cluster
}
