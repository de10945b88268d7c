import type { Access } from './access'
import { HttpProblem } from './problem'
import type { Call } from './route'
import type { Server } from './server'
import type { ServedLead, ServedWorker } from './wire-cluster'

/** What the server needs of `createCluster()`. */
export interface ServedCluster {
  workers(): Promise<readonly ServedWorker[]>
  leader(): Promise<ServedLead | null>
}

/** `GET /workers`: who is there, and who leads. */
export async function listWorkers({ access, server }: Call) {
  const cluster = clusterOf(server)
  // Workers are everybody's: they have runs of all tenants in hand.
  if (access.tenant !== null) throw new HttpProblem('FORBIDDEN', 'Workers are shown to those who see the runs of all.')
  const [workers, leader] = await Promise.all([cluster.workers(), cluster.leader()])
  return { workers: workers.map(shownWorker), leader: leader === null ? null : shownLead(leader) }
}

/** Whether `GET /workers` would answer. */
export function mayShowWorkers({ tenant }: Pick<Access, 'tenant'>, { settings }: Server): boolean {
  return settings.cluster !== null && tenant === null
}

function clusterOf({ settings: { cluster } }: Server): ServedCluster {
  if (cluster !== null) return cluster
  throw new HttpProblem('NOT_SERVED', 'Workers are not served here: createDurablyHandler() was given no cluster.')
}

function shownWorker(worker: ServedWorker): ServedWorker {
  const { workerId, presence, isAlive, capacity, running, assigned, holdsSuspect } = worker
  const { placedJobs, labels, codeVersion, firstBeatAt, lastBeatAt } = worker
  const load = { capacity, running, assigned, holdsSuspect }
  return { workerId, presence, isAlive, ...load, placedJobs, labels, codeVersion, firstBeatAt, lastBeatAt }
}

function shownLead({ workerId, epoch, until, isOver }: ServedLead): ServedLead {
  return { workerId, epoch, until, isOver }
}
