import type { MemoryStorage } from '@coji/durably-core/memory'
import {
  LEADER,
  LEADERLESS_MS,
  LIFECYCLE,
  type Lead,
  type OrphanParams,
  type RunRecord,
  type Storage,
  type TransitionName,
  type WorkerRecord,
} from '@coji/durably-core/storage'
import { isContinued, judgeLease } from './lease-witness'
import { type LeadsSeen, LeadWitness } from './lead-witness'

/** What was seen to be wrong, at the storage itself. */
export interface FleetWitness {
  readonly wrong: string[]
  /** How often each transition was seen. */
  readonly seen: Map<TransitionName, number>
  /** Runs whose holder went on under a lease that was longer than most, after a silence in which others had lost theirs. */
  continued: number
}

/** What `staleThreshold` is where nothing else is said. */
const USUAL_LEASE_MS = 30_000

const BY_HOLDER = ['complete', 'fail', 'timeOut', 'cancelled', 'retryLater', 'suspend', 'release', 'park'] as const

/** What each method may do to a run. */
const MAY: Readonly<Record<string, readonly TransitionName[]>> = {
  enqueue: ['enqueue'],
  claim: ['claim'],
  commit: ['commit', 'enqueue', ...BY_HOLDER],
  renew: ['renew'],
  recover: ['recover'],
  command: ['cancel', 'requestCancel'],
  fire: ['enqueue', 'cancel', 'requestCancel'],
  deliver: ['enqueue'],
  assign: ['assign'],
  start: ['start'],
  decline: ['decline'],
  orphan: ['orphan'],
  free: ['free'],
}

type Call = (...args: never[]) => Promise<unknown>
type Runs = ReadonlyMap<string, RunRecord>

interface Deed {
  readonly name: string
  readonly args: readonly unknown[]
  readonly before: Runs
  readonly after: Runs
  /** As they were before. */
  readonly workers: readonly WorkerRecord[]
  readonly leads: LeadsSeen
  readonly nowMs: number
}

/** Looks at all runs before and after each write: in memory a write is over when its call returns. */
export function witnessed(
  storage: MemoryStorage,
  now: () => number,
): { readonly storage: MemoryStorage; readonly witness: FleetWitness } {
  const witness: FleetWitness = { wrong: [], seen: new Map(), continued: 0 }
  const leads = new LeadWitness(witness.wrong, now)
  const look = async (): Promise<Runs> => new Map((await storage.getRuns({})).map((run) => [run.id, run]))
  const watch = <T extends Call>(name: string, call: T): T =>
    (async (...args: Parameters<T>) => {
      const [nowMs, leadsSeen] = [now(), leads.seen()]
      const before = look()
      const seen = name === 'orphan' ? storage.cluster.placement.getWorkers() : []
      const answering = call(...args)
      const after = look()
      const answer = await answering
      const [was, is, workers] = [await before, await after, await seen]
      judge(witness, { name, args, before: was, after: is, workers, leads: leadsSeen, nowMs })
      return answer
    }) as unknown as T
  const watchAll = <T extends object>(group: T): T =>
    Object.fromEntries(
      Object.entries(group).map(([name, value]) => [name, name in MAY ? watch(name, value as Call) : value]),
    ) as T
  const { cluster } = storage
  const own: MemoryStorage['cluster'] = {
    ...cluster,
    ...leads.watch(cluster),
    schedules: watchAll(cluster.schedules),
    inbox: watchAll(cluster.inbox),
    placement: watchAll(cluster.placement),
  }
  return { storage: { ...(watchAll(storage) as MemoryStorage & Storage), cluster: own }, witness }
}

function judge(witness: FleetWitness, deed: Deed): void {
  const { name, before, after } = deed
  for (const [id, now] of after) {
    const was = before.get(id)
    if (was?.version === now.version) continue
    const made = (MAY[name] ?? []).find((transition) => isMade(transition, was, now))
    if (made === undefined) witness.wrong.push(`${name} brought run ${id} from ${was?.status} to ${now.status}`)
    else witness.seen.set(made, (witness.seen.get(made) ?? 0) + 1)
    if (was === undefined) continue
    judgeChange(witness, deed, { was, now })
    if (isContinued({ ...deed, was }, USUAL_LEASE_MS)) witness.continued += 1
  }
  judgeSlots(witness, after)
}

function isMade(transition: TransitionName, was: RunRecord | undefined, now: RunRecord): boolean {
  const { from, to } = LIFECYCLE[transition] as { from: readonly string[]; to: readonly string[] }
  return (was === undefined ? from.length === 0 : from.includes(was.status)) && to.includes(now.status)
}

interface Change {
  readonly was: RunRecord
  readonly now: RunRecord
}

function judgeChange({ wrong }: FleetWitness, deed: Deed, { was, now }: Change): void {
  const { name } = deed
  const { id } = now
  judgeLease(wrong, { ...deed, was })
  if (was.finishedAt !== null) wrong.push(`${name} changed run ${id} after its end`)
  if (name === 'assign' || name === 'start' || name === 'decline') judgePlacement(wrong, deed, { was, now })
  if (name === 'orphan') judgeOrphan(wrong, deed, was)
  if (name === 'free' && deed.leads.wasLed(LEADER, LEADERLESS_MS)) wrong.push(`run ${id} was freed under a leader`)
  const mayHaveNewOwner = was.status !== 'running' || name !== 'commit'
  if (!mayHaveNewOwner && now.status === 'running' && now.claimToken !== was.claimToken) {
    wrong.push(`a commit changed the owner of run ${id}`)
  }
  if (name === 'commit' && was.status === 'running' && was.leaseEpoch !== now.leaseEpoch) {
    wrong.push(`a commit changed the lease of run ${id}`)
  }
}

function judgePlacement(wrong: string[], { name, args, leads }: Deed, { was, now }: Change): void {
  const { id } = now
  const asked = (name === 'assign' ? args[1] : (args[0] as { readonly runs: unknown }).runs) as readonly Asked[]
  const version = asked.find(({ runId }) => runId === id)?.version
  if (version !== was.version) wrong.push(`${name} changed run ${id} of version ${was.version} as ${version}`)
  if (name === 'assign') {
    leads.mustBeNewest(`the assignment of run ${id}`, args[0] as Lead)
    return
  }
  const { workerId } = args[0] as { readonly workerId: string }
  if (workerId !== was.assignedWorkerId) wrong.push(`${workerId} took ${name} of run ${id} of ${was.assignedWorkerId}`)
  if (name === 'start' && now.leaderEpoch !== was.leaderEpoch) wrong.push(`start changed the leader epoch of run ${id}`)
}

function judgeOrphan(wrong: string[], { args, workers, leads, nowMs }: Deed, was: RunRecord): void {
  const { lead, reassignAfterMs, livingAfterMs } = args[0] as OrphanParams
  if (lead !== null) leads.mustBeNewest(`taking back run ${was.id}`, lead)
  else if (leads.wasLed(LEADER, LEADERLESS_MS)) wrong.push(`run ${was.id} was taken back past the leader`)
  const isAlive = workers.some((worker) => worker.workerId === was.assignedWorkerId && worker.isAlive)
  const age = nowMs - Date.parse(was.assignedAt ?? '')
  if (!(age >= (isAlive ? livingAfterMs : reassignAfterMs))) wrong.push(`run ${was.id} was taken back after ${age} ms`)
}

interface Asked {
  readonly runId: string
  readonly version: number
}

function judgeSlots({ wrong }: FleetWitness, runs: Runs): void {
  const taken = new Set<string>()
  for (const { id, concurrencyKey, concurrencySlot, concurrencyLimit, tenant } of runs.values()) {
    if (concurrencySlot === null) continue
    const name = `${tenant} ${concurrencyKey} ${concurrencySlot}`
    if (taken.has(name) || concurrencySlot >= concurrencyLimit) wrong.push(`run ${id} has slot ${name}`)
    taken.add(name)
  }
}
