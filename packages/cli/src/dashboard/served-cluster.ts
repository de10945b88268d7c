import type { SqlDurably } from '@coji/durably'
import type { ServedCluster } from '@coji/durably-server'

/** The workers of a cluster, where there is one. Nothing of it is led from here. */
export async function servedCluster({ storage }: SqlDurably): Promise<ServedCluster | undefined> {
  const { placement, getLead } = storage.cluster
  const cluster = { workers: () => placement.getWorkers(), leader: () => getLead('leader') }
  const [workers, leader] = await Promise.all([cluster.workers(), cluster.leader()])
  return workers.length === 0 && leader === null ? undefined : cluster
}
