import type { Lease, RunCommit, TransitionName } from '../port'
import type { Memory } from './memory'
import type { RunEntry } from './run-entry'

interface Write {
  readonly transition: TransitionName
  readonly lease: Lease
}

/** Whether the lease is the one the run is held under. */
export function holdsLease({ rules }: Memory, entry: RunEntry, { transition, lease }: Write): boolean {
  const { status, leaseEpoch, leaderEpoch } = entry.record
  const isCurrent = () =>
    lease.epoch === leaseEpoch && lease.token === entry.lease?.token && lease.leaderEpoch === leaderEpoch
  return rules.allowsFrom(transition, status) && rules.allows(transition, 'lease', isCurrent)
}

export function mayCommit(memory: Memory, entry: RunEntry, { lease, commitNo, outcome }: RunCommit): boolean {
  const transition = outcome?.kind ?? 'commit'
  return (
    holdsLease(memory, entry, { transition, lease }) &&
    memory.rules.allows(transition, 'commitNo', () => entry.record.commitNo === commitNo - 1)
  )
}

/** The answer to this very commit was lost, and it comes again. */
export function wasApplied(entry: RunEntry, { lease, commitNo }: RunCommit): boolean {
  const { record } = entry
  return record.leaseEpoch === lease.epoch && record.commitNo === commitNo && entry.lease?.token === lease.token
}
