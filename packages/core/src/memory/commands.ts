import type { CommandAnswer, RunCommand, RunRecord, TransitionName } from '../port'
import { asCancelled, leaveRunning } from './leave'
import { copyOf, frozenCopy, type Memory } from './memory'
import type { RunEntry } from './run-entry'

export function command(memory: Memory, order: RunCommand): CommandAnswer {
  const entry = memory.table.find(order.runId, order.tenant)
  if (entry === undefined) return { applied: false, reason: 'not-found' }
  const run = obey(memory, entry, order)
  if (run === null) return { applied: false, reason: 'wrong-state', run: copyOf(entry.record) }
  return { applied: true, run: copyOf(run) }
}

/** `null`: the run is not in a state for it. */
function obey(memory: Memory, entry: RunEntry, order: RunCommand): RunRecord | null {
  switch (order.kind) {
    case 'cancel':
      return cancel(memory, entry, order)
    case 'retry':
      return isIn(memory, entry, 'retry') ? retry(memory, entry, order) : null
    case 'park':
      return isIn(memory, entry, 'parkPending') ? park(memory, entry, order) : null
    case 'unpark':
      return isParked(memory, entry, 'unpark') ? unpark(memory, entry, order) : null
    case 'failParked':
      return isParked(memory, entry, 'failParked') ? failParked(memory, entry, order) : null
    case 'remove':
      return isIn(memory, entry, 'remove') ? remove(memory, entry) : null
  }
}

type Order<K extends RunCommand['kind']> = Extract<RunCommand, { kind: K }>

function isIn({ rules }: Memory, { record }: RunEntry, transition: TransitionName): boolean {
  return rules.allowsFrom(transition, record.status)
}

/** Parked is not a status of its own, so that the guard has to ask for more than the status. */
function isParked({ rules }: Memory, { record }: RunEntry, transition: 'unpark' | 'failParked'): boolean {
  return (
    rules.allowsFrom(transition, record.status) &&
    rules.allows(transition, 'status', () => record.waitingFor?.kind === 'unpark')
  )
}

function cancel(memory: Memory, entry: RunEntry, { events }: Order<'cancel'>): RunRecord | null {
  const { table, clock, hints } = memory
  const cancelRequestedAt = entry.record.cancelRequestedAt ?? clock.now()
  if (isIn(memory, entry, 'requestCancel')) {
    hints.noteCancel(entry.record.id)
    return table.change(entry, { cancelRequestedAt }, events.requested)
  }
  if (!isIn(memory, entry, 'cancel')) return null
  return table.change(entry, { ...asCancelled(memory, entry), cancelRequestedAt }, events.cancelled)
}

function retry({ table }: Memory, entry: RunEntry, { events }: Order<'retry'>): RunRecord {
  const { attempt, leaseEpoch, createdAt } = entry.record
  entry.steps.removeWaiting()
  const change = {
    ...({ status: 'pending', waitingFor: null, ownerId: null, claimToken: null, leaseUntil: null } as const),
    ...{ output: null, error: null, errorDetail: null, crashCount: 0, cancelRequestedAt: null },
    ...{ deadlineAt: null, startedAt: null, finishedAt: null, concurrencySlot: null },
    attempt: attempt + 1,
    attemptBase: attempt,
    leaseEpoch: leaseEpoch + 1,
    availableAt: createdAt,
  }
  return table.change(entry, change, events)
}

function park({ table }: Memory, entry: RunEntry, { reason, events }: Order<'park'>): RunRecord {
  return table.change(entry, { availableAt: null, waitingFor: frozenCopy({ kind: 'unpark', reason }) }, events)
}

function unpark({ table }: Memory, entry: RunEntry, { events }: Order<'unpark'>): RunRecord {
  return table.change(entry, { availableAt: entry.record.createdAt, waitingFor: null }, events)
}

function failParked(memory: Memory, entry: RunEntry, { error, detail, events }: Order<'failParked'>): RunRecord {
  const change = { ...leaveRunning(memory, entry, 'failed'), error, errorDetail: frozenCopy(detail) }
  return memory.table.change(entry, change, events)
}

function remove({ table }: Memory, entry: RunEntry): RunRecord {
  table.remove(entry)
  return entry.record
}
