import {
  decodeValue,
  InvalidOptionError,
  isInstant,
  type OptionNames,
  requireDelay,
  refuseBadText,
  refuseUnknownOptions,
  requireInteger,
} from '../base'
import type { Engine } from '../engine'
import { removeAll } from './remove-all'
import { type AuditCursor, type AuditQuery, type AuditRecord, capability } from '../port'

/** What somebody did. */
export interface AuditEntry extends Omit<AuditRecord, 'before' | 'after'> {
  /**
   * Of a run its status and attempt, of many runs or messages their ids, of a job whether it is paused or which messages it wanted,
   * of a schedule what it is, of settings their values.
   */
  readonly before: unknown
  /** `null` for what was removed. */
  readonly after: unknown
}

/** Which entries `getAudit()` returns: those that meet every condition. */
export interface AuditFilter {
  /** Of this actor. */
  readonly actor?: string | undefined
  /** Such as `cancel`, `retry`, `signal`, `fork`, `deleteRun`, `purge`, `pauseJob`, `schedules.pause`, `inbox.replay`, `inbox.forget`, `settings`. */
  readonly action?: string | undefined
  /** The id of a run, or the name of a job or a schedule. */
  readonly target?: string | undefined
  /** Of this tenant only. */
  readonly tenant?: string | undefined
  /** So many at most. Default: all. */
  readonly limit?: number | undefined
  /** The last entry of the page before. */
  readonly cursor?: AuditCursor | undefined
}

/** Reading what operators did. */
export interface AuditReads {
  /** Newest first: what was done by calls that said who does it (`as`). */
  getAudit(filter?: AuditFilter): Promise<AuditEntry[]>
}

const FILTER: OptionNames<AuditFilter> = {
  actor: true,
  action: true,
  target: true,
  tenant: true,
  limit: true,
  cursor: true,
}

export function createAuditReads({ storage }: Engine, tenant?: string): AuditReads {
  return {
    async getAudit(filter = {}) {
      refuseUnknownOptions('getAudit()', filter, FILTER)
      const group = capability(storage, 'audit', 'getAudit()')
      const { limit, cursor, ...texts } = filter
      for (const [name, text] of Object.entries(texts)) refuseBadText(name, text)
      if (limit !== undefined) requireInteger('limit', limit, { from: 1 })
      if (cursor !== undefined) requireCursor(cursor)
      const scope = tenant === undefined ? {} : { tenant }
      const given = Object.entries(filter).filter(([, value]) => value !== undefined)
      const records = await group.list({ ...(Object.fromEntries(given) as AuditQuery), ...scope })
      return records.map((record) => ({
        ...record,
        before: record.before === null ? null : decodeValue(record.before),
        after: record.after === null ? null : decodeValue(record.after),
      }))
    },
  }
}

function requireCursor(cursor: AuditCursor): void {
  const { at, id } = Object(cursor) as Partial<AuditCursor>
  if (typeof id === 'string' && isInstant(at)) return
  throw new InvalidOptionError('cursor must be an entry of getAudit(), or its at and id.')
}

/** How far back the audit goes. */
export interface AuditPurge {
  /** Entries that are older than this many milliseconds go. */
  readonly olderThan: number
}

const BATCH = 500

export async function purgeAudit(engine: Engine, options: AuditPurge): Promise<number> {
  refuseUnknownOptions('purgeAudit()', options, { olderThan: true })
  const { olderThan } = options
  requireDelay('olderThan', olderThan)
  const group = capability(engine.storage, 'audit', 'purgeAudit()')
  return removeAll(engine, BATCH, () => group.purge({ olderThanMs: olderThan, limit: BATCH }))
}
