import type { NewRun } from '@coji/durably-core/storage'
import { runCommit } from '@coji/durably-core/testing'
import type { KyselyStorage } from '../../src'
import { newRun } from '../builders'
import { OUTCOMES, type World } from './operations'

/** What a case finds: one run, and another one of the same concurrency key that waits behind it. */
export const STATES = ['running', 'asked to cancel', 'taken over', 'pending', 'failed'] as const
/** Or a running child with its parent, whose id comes before that of the child or after it. */
export const FAMILIES = ['parent first', 'child first', 'parent waiting'] as const
export type State = (typeof STATES)[number] | (typeof FAMILIES)[number]

const isFamily = (state: State) => (FAMILIES as readonly State[]).includes(state)

/** Many at once; each has a job of its own. */
export async function createWorlds(storage: KyselyStorage, state: State, names: readonly string[]): Promise<World[]> {
  await storage.enqueue(names.flatMap((name) => (isFamily(state) ? family(name, state) : rivals(name))))
  const terms = {
    workerId: 'first',
    claimToken: 'first',
    leaseMs: 60_000,
    jobs: names,
    holdsSuspect: false,
    events: [],
  }
  const claimed = await storage.claim({ ...terms, limit: names.length * 2 })
  if (claimed.length !== names.length * (isFamily(state) ? 2 : 1)) throw new Error(`${claimed.length} were claimed.`)
  const worlds = new Map(claimed.map((run) => [run.id, worldOf(run)]))
  const parents = claimed
    .filter((run) => run.parentRunId === null)
    .map((run) => {
      const child = claimed.find(({ parentRunId }) => parentRunId === run.id)
      return { ...worldOf(run), child: worlds.get(child?.id ?? '') ?? null }
    })
  await nameOwners(storage)
  return bringInto(storage, state, parents)
}

/** Whoever recovers, recovers those of one case. */
async function nameOwners(storage: KyselyStorage): Promise<void> {
  const claimed = storage.db.updateTable('durably_runs').where('owner_id', '=', 'first')
  await claimed.set((e) => ({ owner_id: e.ref('job_name'), version: e('version', '+', 1) })).execute()
}

function rivals(name: string): NewRun[] {
  const common = { jobName: name, concurrencyKey: name, concurrencyLimit: 1 }
  return [newRun({ ...common, id: `${name}-1` }), newRun({ ...common, id: `${name}-2` })]
}

function family(name: string, state: State): NewRun[] {
  const [parent, child] = state === 'child first' ? ['b', 'a'] : ['a', 'b']
  const parentRunId = `${name}-${parent}`
  return [newRun({ id: parentRunId, jobName: name }), newRun({ id: `${name}-${child}`, jobName: name, parentRunId })]
}

function worldOf({ id, jobName, leaseEpoch }: { id: string; jobName: string; leaseEpoch: number }): World {
  const lease = { runId: id, epoch: leaseEpoch, token: 'first', leaderEpoch: null }
  return { name: jobName, runId: id, lease, commitNo: 1, child: null }
}

const LEFT = { pending: 'release', 'taken over': 'release', failed: 'fail', 'parent waiting': 'suspend' } as const

async function bringInto(storage: KyselyStorage, state: State, worlds: World[]): Promise<World[]> {
  if (state === 'asked to cancel') {
    const events = { cancelled: [], requested: [] }
    for (const { runId } of worlds) await storage.command({ kind: 'cancel', runId, events })
  }
  if (!(state in LEFT)) return worlds
  const outcome = OUTCOMES[LEFT[state as keyof typeof LEFT]]
  await storage.commit(worlds.map((world) => runCommit(world, { outcome })))
  if (state === 'taken over') {
    // By someone whose next commit has the same number.
    const jobs = worlds.map(({ name }) => name)
    const terms = { workerId: 'first', claimToken: 'second', leaseMs: 60_000, jobs, holdsSuspect: false, events: [] }
    await storage.claim({ ...terms, limit: jobs.length * 2 })
    await nameOwners(storage)
    return worlds
  }
  return worlds.map((world) => ({ ...world, commitNo: 2 }))
}
