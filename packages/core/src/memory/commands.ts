import {
  afterCancel,
  afterCancelRequest,
  afterFailParked,
  afterPark,
  afterRetry,
  afterUnpark,
  auditViewOf,
  type CommandAnswer,
  type EventTemplate,
  type RunChange,
  type RunCommand,
  type RunRecord,
  type TransitionName,
} from '../port'
import { copyOf, type Memory, ownChange } from './memory'

import type { RunEntry } from './run-entry'

export function command(memory: Memory, order: RunCommand): CommandAnswer {
  const entry = memory.table.find(order.runId, order.tenant)
  if (entry === undefined) return { applied: false, reason: 'not-found' }
  const before = order.audit === undefined ? null : auditViewOf(entry.record)
  const run = obey(memory, entry, order)
  if (run === null) return { applied: false, reason: 'wrong-state', run: copyOf(entry.record) }
  if (order.audit !== undefined) {
    const { id: target, tenant } = run
    const after = order.kind === 'remove' ? null : auditViewOf(run)
    memory.audit.add(order.audit, { targetKind: 'run', target, tenant, before, after })
  }
  return { applied: true, run: copyOf(run) }
}

/** `null`: the run is not in a state for it. */
function obey(memory: Memory, entry: RunEntry, order: RunCommand): RunRecord | null {
  const { record } = entry
  const change = (made: RunChange, events: readonly EventTemplate[]) =>
    memory.table.change(entry, ownChange(made), events)
  switch (order.kind) {
    case 'cancel':
      return cancel(memory, entry, order)
    case 'retry':
      return isIn(memory, entry, 'retry') ? retry(memory, entry, order) : null
    case 'park':
      return isIn(memory, entry, 'parkPending') ? change(afterPark(order.reason), order.events) : null
    case 'unpark':
      return isParked(memory, entry, 'unpark') ? change(afterUnpark(record), order.events) : null
    case 'failParked':
      return isParked(memory, entry, 'failParked')
        ? change(afterFailParked(record, order, memory.clock), order.events)
        : null
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

/** One that runs is only told to end. */
export function cancel(
  { table, clock, hints, rules }: Memory,
  entry: RunEntry,
  { events }: Pick<Order<'cancel'>, 'events'>,
): RunRecord | null {
  const { record } = entry
  if (rules.allowsFrom('requestCancel', record.status)) {
    hints.noteCancel(record.id)
    return table.change(entry, afterCancelRequest(record, clock), events.requested)
  }
  if (!rules.allowsFrom('cancel', record.status)) return null
  return table.change(entry, afterCancel(record, clock), events.cancelled)
}

function retry({ table }: Memory, entry: RunEntry, { events }: Order<'retry'>): RunRecord {
  entry.steps.removeWaiting()
  return table.change(entry, afterRetry(entry.record), events)
}

function remove({ table }: Memory, entry: RunEntry): RunRecord {
  table.remove(entry)
  return entry.record
}
