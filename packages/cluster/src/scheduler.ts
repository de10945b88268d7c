import { InvalidOptionError, StorageError, type Durably } from '@coji/durably-core'
import type { Lead } from '@coji/durably-core/storage'
import { refuseBadKey, refuseUnknownOptions, requireDuration } from '@coji/durably-core/extend'
import { clusterOf } from './cluster-of'
import { Duty, soonest } from './duty'
import { createScheduleCommands, refuseBadName, type ScheduleCommands } from './schedule-commands'
import { contentOf, SCHEDULE, type ScheduleOptions } from './schedule-options'
import { type DefinedSchedule, reconcile } from './reconcile'
import { tick, type UnreadSchedule } from './tick'
import { DAY_MS, hourly } from './upkeep'

/** What `createScheduler` takes. */
export interface SchedulerOptions {
  /**
   * Names the code whose schedules these are. What this code no longer defines is paused; schedules of other sources on the
   * same database are left alone. Default `app`; where it is left out and nothing is defined, nothing is paused.
   */
  readonly source?: string | undefined
  /** Milliseconds between two looks for what other processes have changed. Default 1000. */
  readonly pollingInterval?: number | undefined
  /** Schedules of `create()` that have no instant any more are removed after so many milliseconds. Default 30 days. */
  readonly keepEnded?: number | undefined
}

/** Schedules of an instance. They fire from `durably.start()` to `durably.stop()`, in one process at a time. */
export interface Scheduler extends ScheduleCommands {
  /** Part of the code: stored at the start, changed when the code changes, paused when it leaves the code. */
  define<TInput>(name: string, options: ScheduleOptions<TInput>): void
  /** Fires what has come, once, for serverless functions and tests; `fired` counts the new runs. */
  tick(): Promise<{ readonly fired: number }>
}

/**
 * Runs at instants: `cron`, `every` or `at`. Any number of processes may have one on the same database; each instant fires
 * once.
 *
 * ```ts
 * const schedules = createScheduler(durably)
 * schedules.define('nightly', { job: report, payload: {}, cron: '0 2 * * *', zone: 'Asia/Tokyo' })
 * ```
 */
export function createScheduler(durably: Durably, options: SchedulerOptions = {}): Scheduler {
  refuseUnknownOptions('createScheduler()', options, { source: true, pollingInterval: true, keepEnded: true })
  const { source = 'app', pollingInterval = 1000, keepEnded = 30 * DAY_MS } = options
  refuseBadKey('source', source)
  requireDuration('pollingInterval', pollingInterval)
  requireDuration('keepEnded', keepEnded)
  const cluster = clusterOf(durably, 'createScheduler()')
  const defined = new Map<string, DefinedSchedule>()
  let fired = 0
  const tellUnread = tellOnce(durably)
  const remove = (lead: Lead, limit: number) => cluster.schedules.purge(lead, { olderThanMs: keepEnded, limit })
  const upkeep = hourly({ durably, cluster, remove })
  const duty: Duty = new Duty({
    ...{ durably, cluster, name: 'schedules', everyMs: pollingInterval },
    async prepare() {
      // Who only creates or lists schedules does not speak for the code of others, unless it says whose code it is.
      if (defined.size === 0 && options.source === undefined) return
      await reconcile({ durably, storage: cluster.schedules, source, defined: [...defined.values()] })
    },
    async work(lead) {
      const result = await tick({ durably, cluster }, lead)
      fired += result.fired
      if (result.isLost) duty.forgetLead()
      if (result.busy > 0) durably.reportError(heldUp(result.busy), 'schedules')
      tellUnread(result.unread)
      return soonest([result.nextInMs, await upkeep.turn(lead)])
    },
  })
  durably.use({ name: 'schedules', whileStarted: () => duty.start() })
  return {
    ...createScheduleCommands({ durably, storage: cluster.schedules, onChange: () => duty.wake() }),
    define(name, scheduleOptions) {
      refuseBadName(name)
      refuseUnknownOptions(`Schedule "${name}"`, scheduleOptions, SCHEDULE)
      const { tenant = '' } = scheduleOptions
      const key = JSON.stringify([tenant, name])
      if (defined.has(key)) throw new InvalidOptionError(`Schedule "${name}" is defined twice. Give one another name.`)
      defined.set(key, { tenant, name, content: contentOf(durably.drafts, name, scheduleOptions as ScheduleOptions) })
      duty.unprepare()
    },
    async tick() {
      const before = fired
      await duty.workNow()
      return { fired: fired - before }
    },
  }
}

/** At every look there is the same to tell. */
function tellOnce(durably: Durably): (unread: readonly UnreadSchedule[]) => void {
  let told = new Set<string>()
  return (unread) => {
    const keyed = unread.map((each) => ({ ...each, key: `${each.schedule.id} ${each.schedule.version}` }))
    for (const { key, schedule, error } of keyed) {
      if (!told.has(key)) durably.reportError(notRead(schedule.name, error), 'schedules')
    }
    told = new Set(keyed.map(({ key }) => key))
  }
}

function notRead(name: string, error: unknown): InvalidOptionError {
  const why = error instanceof Error ? error.message : String(error)
  return new InvalidOptionError(`Schedule "${name}" does not fire, since this process cannot read it: ${why}`)
}

function heldUp(count: number): StorageError {
  const which = count === 1 ? 'A schedule waits' : `${count} schedules wait`
  return new StorageError('STORAGE_BUSY', `${which}: somebody has locked runs that are to make way. They fire later.`)
}
