import type { CommandAnswer, EventTemplate, RunCommand } from '@coji/durably-core/storage'
import type { CompiledQuery } from 'kysely'
import { type Change, type ChangeName, commandStatements, type TargetName } from './command-statements'
import type { Reads } from '../read'
import { createWriteLocked } from './row-locks'
import { withNote } from './audit'
import { type Row, type SqlContext, type SqlValue, type StatementTarget, toJson, toRun } from '../statement'
import { bindEvents } from './run-events'

/** Those who can send a command: one that makes room has another sender. */
export interface CommandTargets {
  readonly callers: StatementTarget
  readonly removers: StatementTarget
}

export type Command = (targets: CommandTargets, order: RunCommand) => Promise<CommandAnswer>

export function createCommand(context: SqlContext, reads: Reads): Command {
  const bind = createBind(context)
  const writeLocked = createWriteLocked(context)

  return async function command({ callers, removers }, order) {
    const { runId, tenant } = order
    const target = order.kind === 'remove' ? removers : callers
    const rows = (await writeLocked(target, { runIds: [runId] }, bind(order))).flat()
    const changed = rows.find((row) => 'lease_epoch' in row)
    if (changed !== undefined) {
      const labels = order.kind === 'remove' ? { labels: labelsIn(rows) } : {}
      return { applied: true, run: toRun({ ...changed, ...labels }) }
    }
    const run = await reads.getRun(target, runId, tenant === undefined ? {} : { tenant })
    return run === null ? { applied: false, reason: 'not-found' } : { applied: false, reason: 'wrong-state', run }
  }
}

function createBind(context: SqlContext): (order: RunCommand) => readonly CompiledQuery[] {
  const statements = commandStatements(context)

  return (order) => {
    const values: Record<TargetName, SqlValue> = { runId: order.runId, tenant: order.tenant ?? null }
    return withNote(order.audit, statements.noted[order.kind], { values, list: listOf(order, values) })
  }

  function listOf(order: RunCommand, target: Record<TargetName, SqlValue>): CompiledQuery[] {
    const apply = (
      change: Change,
      events: readonly EventTemplate[],
      values: Partial<Record<ChangeName, SqlValue>> = {},
    ) => [
      ...bindEvents({ statement: change.event, events, after: 0, values: target }),
      change.update.bind({ ...NOTHING, ...values, ...target, eventCount: events.length }),
    ]
    switch (order.kind) {
      case 'cancel':
        return [
          ...apply(statements.requestCancel, order.events.requested),
          statements.wakeParentsOfCancelled.bind(target),
          ...apply(statements.cancel, order.events.cancelled),
        ]
      case 'retry':
        return [statements.dropWaits.bind(target), ...apply(statements.retry, order.events)]
      case 'park':
        return apply(statements.park, order.events, { waitingFor: toJson({ kind: 'unpark', reason: order.reason }) })
      case 'unpark':
        return apply(statements.unpark, order.events)
      case 'failParked': {
        const values = { error: order.error, errorDetail: toJson(order.detail) }
        return [statements.wakeParentsOfFailed.bind(target), ...apply(statements.failParked, order.events, values)]
      }
      case 'remove':
        return statements.remove.map((one) => one.bind(target))
    }
  }
}

const NOTHING = { waitingFor: null, error: null, errorDetail: null } as const

/** The labels of a removed run are no longer there when its row is answered; their own removal answered them. */
function labelsIn(rows: readonly Row[]): string {
  const labels = rows.filter((row) => 'value' in row).map((row) => [row['name'], row['value']])
  return JSON.stringify(Object.fromEntries(labels))
}
