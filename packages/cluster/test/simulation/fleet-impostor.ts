import type { MemoryStorage } from '@coji/durably-core/memory'
import { type Lead, LEADER, type RunRecord } from '@coji/durably-core/storage'
import { pick, type Random } from './random'

const HOUR_MS = 3_600_000
const AT_ONCE = { reassignAfterMs: 0, livingAfterMs: 0, limit: 1, events: [] } as const
const NOT_YET = { reassignAfterMs: HOUR_MS, livingAfterMs: HOUR_MS, limit: 1, events: [] } as const

interface Scene {
  readonly placement: MemoryStorage['cluster']['placement']
  readonly runs: readonly RunRecord[]
  readonly lead: Lead | null
  readonly workers: readonly string[]
  readonly random: Random
}

/**
 * Writes as a leader or a worker would that is wrong or was frozen for a day: each with all that it needs but one. Nothing of
 * it may be taken.
 */
export async function strike(storage: MemoryStorage, random: Random): Promise<void> {
  const { placement } = storage.cluster
  const scene: Scene = {
    placement,
    runs: await storage.getRuns({}),
    lead: await storage.cluster.getLead(LEADER),
    workers: (await placement.getWorkers()).map(({ workerId }) => workerId),
    random,
  }
  await assignWrongly(scene)
  await startWrongly(scene)
  await takeBackWrongly(scene)
}

/** What a leader may do that is wrong about the workers: it wastes work. */
export async function assignAnything(storage: MemoryStorage): Promise<void> {
  const lead = await storage.cluster.getLead(LEADER)
  const [worker] = await storage.cluster.placement.getWorkers()
  if (lead === null || worker === undefined) return
  const waiting = await storage.getRuns({ statuses: ['pending', 'orphaned'], jobNames: ['placed', 'lasting'] })
  const assignments = waiting.map(({ id, version }) => {
    return { runId: id, version, workerId: worker.workerId, events: [] }
  })
  await storage.cluster.placement.assign(lead, assignments)
}

async function assignWrongly({ placement, runs, lead, workers, random }: Scene): Promise<void> {
  if (lead === null || workers.length === 0) return
  const assign = async (run: RunRecord | undefined, over: { readonly version?: number; readonly lead?: Lead } = {}) => {
    if (run === undefined) return
    const { id: runId, version } = run
    await placement.assign(over.lead ?? lead, [
      { runId, version: over.version ?? version, workerId: pick(random, workers), events: [] },
    ])
  }
  const waiting = runs.filter(({ status }) => status === 'pending' || status === 'orphaned')
  const free = waiting.filter(({ concurrencyKey }) => concurrencyKey === null)
  await assign(
    pick(
      random,
      runs.filter((run) => !waiting.includes(run) && run.concurrencyKey === null),
    ),
  )
  const one = pick(random, free)
  await assign(one, { version: (one?.version ?? 0) - 1 })
  await assign(pick(random, free), { lead: { ...lead, epoch: lead.epoch - 1 } })
  await assign(pick(random, free), { lead: { ...lead, workerId: 'nobody' } })
  await assign(waiting.find((run) => isFull(run, runs)))
}

/** Whether all slots of its key are taken. */
function isFull({ tenant, concurrencyKey, concurrencyLimit, concurrencySlot }: RunRecord, runs: readonly RunRecord[]) {
  if (concurrencyKey === null || concurrencySlot !== null) return false
  const ofKey = runs.filter((run) => run.concurrencyKey === concurrencyKey && run.tenant === tenant)
  return ofKey.filter((run) => run.concurrencySlot !== null).length >= concurrencyLimit
}

/** Starts and declines. */
async function startWrongly({ placement, runs, workers, random }: Scene): Promise<void> {
  const assigned = runs.filter(({ status }) => status === 'assigned')
  const was = runs.filter(({ status, assignedWorkerId }) => status !== 'assigned' && assignedWorkerId !== null)
  const forgeries = [
    forgery(pick(random, was), {}),
    forgery(pick(random, assigned), { version: -1 }),
    forgery(pick(random, assigned), { workerId: workers.find((id) => id !== assigned[0]?.assignedWorkerId) }),
  ].flatMap((each) => each ?? [])
  for (const params of forgeries) {
    await placement.decline(params)
    await placement.start({ ...params, claimToken: `forged ${random()}`, leaseMs: 1000 })
  }
}

function forgery(
  run: RunRecord | undefined,
  over: { readonly version?: number; readonly workerId?: string | undefined },
) {
  if (run === undefined) return null
  const { id: runId, version, assignedWorkerId } = run
  const workerId = over.workerId ?? assignedWorkerId ?? ''
  return { workerId, runs: [{ runId, version: version + (over.version ?? 0) }], events: [] }
}

async function takeBackWrongly({ placement, lead, random }: Scene): Promise<void> {
  if (lead === null) return
  await placement.orphan({ ...AT_ONCE, lead: { ...lead, epoch: lead.epoch - 1 } })
  await placement.orphan({ ...AT_ONCE, lead: null })
  await placement.orphan({ ...NOT_YET, lead })
  // A leader that is in a hurry wastes work, and that is all.
  if (random() < 0.3) await placement.orphan({ ...AT_ONCE, lead })
  await placement.free(100)
}
