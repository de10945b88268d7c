import { type ClaimParams, isSuspect, type RunChange, type RunRecord } from '../port'
import { copyOf, type Memory } from './memory'
import type { RunEntry } from './run-entry'

export function claim(memory: Memory, params: ClaimParams): RunRecord[] {
  if (params.repeat === true) return claimedBefore(memory, params.claimToken)
  const jobs = new Set(unpaused(memory, params.jobs))
  const claimed: RunRecord[] = []
  while (claimed.length < params.limit) {
    const takesSuspect = !params.holdsSuspect && !claimed.some(isSuspect)
    const entry = memory.table.queue.first({ jobs, takesSuspect }, memory.clock.now())
    if (entry === undefined) break
    claimed.push(copyOf(claimOne(memory, entry, params)))
  }
  return claimed
}

function unpaused({ jobs: { paused }, rules }: Memory, jobs: readonly string[]): readonly string[] {
  if (paused.size === 0) return jobs
  return jobs.filter((job) => rules.allows('claim', 'paused', () => !paused.has(job)))
}

function claimOne(memory: Memory, entry: RunEntry, params: ClaimParams): RunRecord {
  return memory.table.change(entry, takenBy(memory, entry, params), params.events)
}

/** A lease begins. */
export function takenBy(
  { table, clock }: Memory,
  entry: RunEntry,
  { claimToken, workerId, leaseMs }: Pick<ClaimParams, 'claimToken' | 'workerId' | 'leaseMs'>,
): RunChange {
  const { record } = entry
  const now = clock.now()
  const leaseUntil = clock.in(leaseMs)
  entry.lease = { token: claimToken, ownerId: workerId, until: leaseUntil }
  return {
    status: 'running',
    claimToken,
    ownerId: workerId,
    leaseUntil,
    leaseEpoch: record.leaseEpoch + 1,
    leaderEpoch: null,
    commitNo: 0,
    waitingFor: null,
    concurrencySlot: table.queue.slotFor(record),
    heartbeatAt: now,
    startedAt: record.startedAt ?? now,
    deadlineAt: record.deadlineAt ?? (record.timeoutMs === null ? null : clock.in(record.timeoutMs)),
  }
}

function claimedBefore({ table }: Memory, claimToken: string): RunRecord[] {
  return [...table.running].filter(({ record }) => record.claimToken === claimToken).map(({ record }) => copyOf(record))
}
