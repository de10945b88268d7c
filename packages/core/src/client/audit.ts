import { decodeValue, InvalidOptionError, type OptionNames, refuseUnknownOptions } from '../base'
import type { Engine } from '../engine'
import { type AuditCursor, type AuditQuery, type AuditRecord, capability } from '../port'

/** What somebody did. */
export interface AuditEntry extends Omit<AuditRecord, 'before' | 'after'> {
  /** Of a run its status and attempt, of many runs their ids, of a job whether it is paused, of settings their values. */
  readonly before: unknown
  /** `null` for what was removed. */
  readonly after: unknown
}

/** Which entries `getAudit()` returns: those that meet every condition. */
export interface AuditFilter {
  /** Of this actor. */
  readonly actor?: string | undefined
  /** Such as `cancel`, `retry`, `signal`, `deleteRun`, `purge`, `pauseJob`, `settings`. */
  readonly action?: string | undefined
  /** The id of a run, or the name of a job. */
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
      const { limit, cursor } = filter
      if (limit !== undefined && !(Number.isSafeInteger(limit) && limit > 0)) {
        throw new InvalidOptionError(`limit must be a positive integer, not ${String(limit)}.`)
      }
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

/** Databases read what is no instant each in its own way. */
function requireCursor(cursor: AuditCursor): void {
  const { at, id } = Object(cursor) as Partial<AuditCursor>
  if (typeof id === 'string' && typeof at === 'string' && isInstant(at)) return
  throw new InvalidOptionError('cursor must be an entry of getAudit(), or its at and id.')
}

function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text))
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
  if (!(typeof olderThan === 'number' && olderThan >= 0 && Number.isFinite(olderThan))) {
    throw new InvalidOptionError(`olderThan must be a number of milliseconds from 0, not ${String(olderThan)}.`)
  }
  const group = capability(engine.storage, 'audit', 'purgeAudit()')
  for (let removed = 0; ; ) {
    const batch = await group.purge({ olderThanMs: olderThan, limit: BATCH })
    removed += batch
    if (batch < BATCH) return removed
    await engine.breathe()
  }
}
