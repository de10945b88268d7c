import {
  InvalidOptionError,
  isEnded,
  type Clock,
  type Durably,
  type EndedStatus,
  type Plugin,
  type PurgeOptions,
} from '@coji/durably-core'
import {
  type OptionNames,
  refuseUnknownOptions,
  requireDelay,
  requireDuration,
  requireInteger,
} from '@coji/durably-core/extend'
import { backgroundClock } from './background-clock'
import { goReportedRounds } from './rounds'

/** Which ended runs `withRetention` removes, and how often it looks. */
export interface RetentionOptions {
  /** Ended runs go this many milliseconds after their end. Default 30 days, unless `keepNewest` alone is given. */
  readonly olderThan?: number | undefined
  /** So many of the newest ended runs stay, whatever their age. */
  readonly keepNewest?: number | undefined
  /** Only runs that ended like this. Default: all. */
  readonly status?: EndedStatus | readonly EndedStatus[] | undefined
  /**
   * Entries of the audit go when they are older than this many milliseconds; the setting `auditRetentionDays` stands before it.
   * Default: none goes.
   */
  readonly auditOlderThan?: number | undefined
  /** Milliseconds between two purges. Default one hour. */
  readonly every?: number | undefined
  /** For tests. */
  readonly clock?: Pick<Clock, 'schedule'> | undefined
}

const NAME = 'retention'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DEFAULT_AGE_MS = 30 * DAY_MS

const OPTIONS: OptionNames<RetentionOptions> = {
  olderThan: true,
  keepNewest: true,
  status: true,
  auditOlderThan: true,
  every: true,
  clock: true,
}

/**
 * Removes ended runs, with all that belongs to them, soon after the start and then once an hour. With `olderThan` and
 * `keepNewest` a run goes when both let it; use the plugin twice for whichever comes first. Trouble is a
 * `worker:error`, and the next try comes a minute later. Any number of processes may use it at once.
 */
export function withRetention(options: RetentionOptions = {}): Plugin {
  refuseUnknownOptions('withRetention()', options, OPTIONS)
  const what = purgeOptions(options)
  const { auditOlderThan, every = HOUR_MS, clock = backgroundClock } = options
  if (auditOlderThan !== undefined) requireDelay('auditOlderThan', auditOlderThan)
  requireDuration('every', every)
  return {
    name: NAME,
    install: (durably) =>
      goReportedRounds({
        ...{ durably, name: NAME, every, clock },
        round: async () => {
          await purge(durably, what, auditOlderThan)
          return every
        },
      }),
  }
}

async function purge(durably: Durably, what: PurgeOptions, auditOlderThan: number | undefined): Promise<void> {
  await durably.purge(what)
  if (durably.storage.audit === undefined) return
  const { auditRetentionDays } = await durably.settings.get()
  const olderThan = auditRetentionDays === undefined ? auditOlderThan : auditRetentionDays * DAY_MS
  if (olderThan !== undefined) await durably.purgeAudit({ olderThan })
}

/** Checked when the plugin is made: a purge an hour later is too late to hear of a mistake. */
function purgeOptions({ olderThan, keepNewest, status }: RetentionOptions): PurgeOptions {
  if (olderThan !== undefined) requireDelay('olderThan', olderThan)
  if (keepNewest !== undefined) requireInteger('keepNewest', keepNewest, { from: 0 })
  const active = [status ?? []].flat().find((each) => !isEnded(each))
  if (active !== undefined) throw new InvalidOptionError(`Retention takes ended runs only; "${active}" is not an end.`)
  const age = olderThan ?? (keepNewest === undefined ? DEFAULT_AGE_MS : undefined)
  return { olderThan: age, keepNewest, status }
}
