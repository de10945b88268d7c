import type { Lease, RenewAnswer } from '../port'
import { holdsLease } from './fence'
import type { Memory } from './memory'

export function renew(memory: Memory, leases: readonly Lease[], leaseMs: number): RenewAnswer[] {
  const { table, clock } = memory
  return leases.map((lease) => {
    const entry = table.find(lease.runId)
    if (entry === undefined || !holdsLease(memory, entry, { transition: 'renew', lease })) return { kept: false }
    const leaseUntil = clock.in(leaseMs)
    if (entry.lease !== null) entry.lease = { ...entry.lease, until: leaseUntil }
    const { wakes, cancelRequestedAt } = table.touch(entry, { leaseUntil, heartbeatAt: clock.now() })
    return { kept: true, wakes, cancelRequested: cancelRequestedAt !== null }
  })
}
