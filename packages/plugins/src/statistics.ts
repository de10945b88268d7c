import type { Clock, Durably, Plugin } from '@coji/durably-core'
import {
  capability,
  type OptionNames,
  refuseUnknownOptions,
  requireDuration,
  type StatisticsStorage,
} from '@coji/durably-core/extend'
import { backgroundClock } from './background-clock'
import { hourOf, hourRowsOf } from './hour-rows'
import { goReportedRounds } from './rounds'

/** How often `withStatistics` counts, and how long it keeps what it counted. */
export interface StatisticsOptions {
  /** Milliseconds between two looks for runs that have ended. Default 30 seconds. */
  readonly every?: number | undefined
  /** Hours go this many milliseconds after they are over. Default 90 days. */
  readonly keepFor?: number | undefined
  /** For tests. */
  readonly clock?: Pick<Clock, 'schedule'> | undefined
}

const NAME = 'statistics'
const SECOND_MS = 1000
const HOUR_MS = 3600 * SECOND_MS
const DAY_MS = 24 * HOUR_MS

/** On Postgres a commit is seen a moment after the instant that it writes: whoever had counted past it would miss it. */
const LAG_MS = 30 * SECOND_MS

/** Small, so that nobody waits for it; with what has gathered, one follows the other. */
const ENDS_AT_ONCE = 500
const BETWEEN_BATCHES_MS = 50

const OPTIONS: OptionNames<StatisticsOptions> = { every: true, keepFor: true, clock: true }

/**
 * Counts by the hour how many runs of each job and tenant ended how, how long they took and how long they waited, for
 * `getStatistics()`. What it counted stays when runs are removed. Each end of a run counts once, whichever of the
 * processes that use the plugin sees it; after a stop it goes on from where it was.
 */
export function withStatistics(options: StatisticsOptions = {}): Plugin {
  refuseUnknownOptions('withStatistics()', options, OPTIONS)
  const { every = 30 * SECOND_MS, keepFor = 90 * DAY_MS, clock = backgroundClock } = options
  requireDuration('every', every)
  requireDuration('keepFor', keepFor)
  return {
    name: NAME,
    install(durably) {
      const storage = capability(durably.storage, 'statistics', 'Plugin "statistics"')
      return countForEver({ durably, storage, every, keepFor, clock })
    },
  }
}

interface CountForEverParams {
  readonly durably: Durably
  readonly storage: StatisticsStorage
  readonly every: number
  readonly keepFor: number
  readonly clock: Pick<Clock, 'schedule'>
}

/** Returns how to stop it; that waits for the batch in progress. */
function countForEver({ durably, storage, every, keepFor, clock }: CountForEverParams): () => Promise<void> {
  const { environment } = durably.drafts
  let forgotten = ''

  /** Milliseconds until the next. */
  async function countBatch(): Promise<number> {
    const { from, ends } = await storage.ends({ limit: ENDS_AT_ONCE, lagMs: LAG_MS })
    const last = ends.at(-1)
    if (last === undefined) return every
    const to = { finishedAt: last.finishedAt, runId: last.runId }
    const isKept = await storage.fold({ from, to, token: environment.createId(), rows: hourRowsOf(ends) })
    if (isKept) await forgetOld(hourOf(last.finishedAt))
    // Somebody else is at it.
    if (!isKept) return every
    return ends.length < ENDS_AT_ONCE ? every : Math.min(BETWEEN_BATCHES_MS, every)
  }

  async function forgetOld(hour: string): Promise<void> {
    if (hour === forgotten) return
    await storage.forget(hourOf(new Date(environment.clock.now() - keepFor).toISOString()))
    forgotten = hour
  }

  return goReportedRounds({ durably, name: NAME, every, clock, round: countBatch })
}
