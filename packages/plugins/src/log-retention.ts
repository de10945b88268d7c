import {
  type Clock,
  type Durably,
  InvalidOptionError,
  type LogArchive,
  LogArchiveError,
  type Plugin,
} from '@coji/durably-core'
import type { ArchivedLogs, ArchivingStorage, EndCursor, LoggedRuns, LogRecord } from '@coji/durably-core/storage'
import { type OptionNames, refuseUnknownOptions, requireDuration } from '@coji/durably-core/extend'
import { backgroundClock } from './background-clock'
import { goReportedRounds } from './rounds'

/** Where logs go that `withLogRetention` takes out of the database, and when. */
export interface LogRetentionOptions {
  /** `fileArchive(folder)` of `@coji/durably/plugins/node`, or `blobArchive(store)`. */
  readonly archive: LogArchive
  /**
   * So many days after the end of a run its logs leave the database. Default 14; `Infinity` only reads the archive. The setting
   * `logRetentionDaysDb` stands before it, where one is set.
   */
  readonly days?: number | undefined
  /** Milliseconds between two rounds. Default one hour; a changed setting is heard of within a minute. */
  readonly every?: number | undefined
  /** For tests. */
  readonly clock?: Pick<Clock, 'schedule'> | undefined
}

/** Not more than any setting may be. */
const MOST_DAYS = 36_600

const OPTIONS: OptionNames<LogRetentionOptions> = { archive: true, days: true, every: true, clock: true }

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DEFAULT_DAYS = 14

/** How many runs are looked at, and how many logs are read and removed, at a time. */
const RUNS = 200
const LOGS = 1000

/** Longer than anybody takes to write the logs of one run. */
const WRITTEN_WITHIN_MS = HOUR_MS

/**
 * Moves the logs of runs that have ended some time ago to an archive, and reads them from there: `getLogs()` gives what it
 * always did. Any number of processes may use it on one archive; each that reads logs needs it. Trouble is a `worker:error`,
 * and the next try comes a minute later.
 */
export function withLogRetention(options: LogRetentionOptions): Plugin {
  refuseUnknownOptions('withLogRetention()', options, OPTIONS)
  const { archive, days = DEFAULT_DAYS, every = HOUR_MS, clock = backgroundClock } = options
  requireArchive(archive)
  if (!(typeof days === 'number' && days >= 0 && (days <= MOST_DAYS || days === Number.POSITIVE_INFINITY))) {
    throw new InvalidOptionError(`days must be a number from 0 to ${MOST_DAYS}, or Infinity, not ${String(days)}.`)
  }
  requireDuration('every', every)
  return {
    name: NAME,
    logArchive: archive,
    install(durably) {
      const mover = new LogMover(durably, { archive, days, every })
      const lookEvery = Math.min(every, MINUTE_MS)
      const stop = goReportedRounds({
        ...{ durably, name: NAME, clock, every: lookEvery },
        async round(isStopped) {
          await mover.look(isStopped)
          return lookEvery
        },
      })
      const off = durably.on('run:delete', () => mover.tidySoon())
      return () => {
        off()
        return Promise.all([stop(), mover.tidied]).then(() => {})
      }
    },
  }
}

const NAME = 'log-retention'

function requireArchive(archive: LogArchive): void {
  const has = (name: keyof LogArchive) => typeof Object(archive)[name] === 'function'
  if (has('write') && has('read') && has('remove')) return
  throw new InvalidOptionError('withLogRetention() needs an archive, for example fileArchive(folder).')
}

interface MoverOptions {
  readonly archive: LogArchive
  readonly days: number
  readonly every: number
}

type LoggedRun = LoggedRuns['runs'][number]
type Nullable<T> = { readonly [K in keyof T]: T[K] | null }

class LogMover {
  readonly #durably: Durably
  readonly #archive: LogArchive
  readonly #options: MoverOptions
  /** Of the last round that was not cut short, and how long ago it was. */
  #lastDays: number | null = null
  #sinceMs = 0
  /** Everything before it has been looked at. */
  #after: EndCursor | null = null
  #tidying: Promise<void> = Promise.resolve()
  #isToTidy = false

  constructor(durably: Durably, options: MoverOptions) {
    this.#durably = durably
    this.#archive = options.archive
    this.#options = options
  }

  /** Called every minute, for the sake of the setting. */
  async look(isStopped: () => boolean): Promise<void> {
    const { days: ofCode, every } = this.#options
    const days = (await this.#durably.settings.get()).logRetentionDaysDb ?? ofCode
    this.#sinceMs += Math.min(every, MINUTE_MS)
    if (days === this.#lastDays && this.#sinceMs < every) return
    // In a minute again.
    if (!(await this.#move(days * DAY_MS, isStopped))) return
    this.#lastDays = days
    this.#sinceMs = 0
  }

  /** Whether the archive was there for all of them. */
  async #move(olderThanMs: number, isStopped: () => boolean): Promise<boolean> {
    const before = this.#after
    let wasThere = true
    while (Number.isFinite(olderThanMs) && !isStopped()) {
      const { runs, last } = await this.#storage.findLogged({ olderThanMs, after: this.#after, limit: RUNS })
      for (const run of runs) if (!isStopped()) wasThere = (await this.#moveLogsOf(run, isStopped)) && wasThere
      if (last === null || isStopped()) break
      this.#after = last
    }
    if (!wasThere) this.#after = before
    await this.#tidy(isStopped)
    return wasThere
  }

  /** What no run refers to leaves the archive. */
  tidySoon(): void {
    if (this.#isToTidy) return
    this.#isToTidy = true
    this.#tidying = this.#tidying
      .then(() => {
        this.#isToTidy = false
        return this.#tidy(() => false)
      })
      .catch((error: unknown) => this.#durably.reportError(error, NAME))
  }

  get tidied(): Promise<void> {
    return this.#tidying
  }

  /** Logs that cannot be put with those that the archive has already stay where they are. False: the archive was away. */
  async #moveLogsOf(run: LoggedRun, isStopped: () => boolean): Promise<boolean> {
    try {
      const archived = (await this.#archiveLogsOf(run)) ?? (await this.#archivedOf(run.id))
      if (archived !== null) await this.#removeArchived(archived, isStopped)
      return true
    } catch (error) {
      if (!(error instanceof LogArchiveError)) throw error
      this.#durably.reportError(error, NAME)
      return error.reason !== 'unreachable'
    }
  }

  /** What the archive has of the run by now; `null`: nothing that is known here, or somebody else was quicker. */
  async #archiveLogsOf({ id: runId, version }: LoggedRun): Promise<ArchivedLogs | null> {
    const run = await this.#durably.storage.getRun(runId)
    if (run?.version !== version) return null
    const { logRef = null } = run
    const seen = { last: logRef === null ? null : await lastOf(this.#archive.read(logRef)) }
    const unarchived = await this.#storage.getUnarchived(runId, { ...seen, limit: 1 })
    if (unarchived.length === 0) return archivedUpTo({ runId, name: logRef, ...seen })
    const name = nameFor(runId)
    await this.#storage.announce(name)
    await this.#archive.write(name, this.#logsOf(runId, logRef, seen))
    return (await this.#storage.refer({ runId, version, name })) ? archivedUpTo({ runId, name, ...seen }) : null
  }

  async *#logsOf(
    runId: string,
    logRef: string | null,
    seen: { last: string | null },
  ): AsyncIterable<readonly LogRecord[]> {
    if (logRef !== null) yield* this.#archive.read(logRef)
    for (;;) {
      const page = await this.#storage.getUnarchived(runId, { ...seen, limit: LOGS })
      yield page
      seen.last = page.at(-1)?.id ?? seen.last
      if (page.length < LOGS) return
    }
  }

  /** Who put them there may have died before they were removed from the database: whoever comes by goes on. */
  async #archivedOf(runId: string): Promise<ArchivedLogs | null> {
    const { logRef: name = null } = (await this.#durably.storage.getRun(runId)) ?? {}
    return archivedUpTo({ runId, name, last: name === null ? null : await lastOf(this.#archive.read(name)) })
  }

  async #removeArchived(archived: ArchivedLogs, isStopped: () => boolean): Promise<void> {
    const { clock } = this.#durably.drafts.environment
    for (let isOver = false; !isOver && !isStopped(); ) {
      isOver = await this.#storage.removeArchived({ ...archived, limit: LOGS })
      await clock.turn?.()
    }
  }

  async #tidy(isStopped: () => boolean): Promise<void> {
    for (let isMore = true; isMore && !isStopped(); ) {
      const names = await this.#storage.giveUp({ announcedForMs: WRITTEN_WITHIN_MS, limit: RUNS })
      for (const name of names) await this.#archive.remove(name)
      await this.#storage.forget(names)
      isMore = names.length === RUNS
    }
  }

  get #storage(): ArchivingStorage {
    // A plugin with an archive is refused by an instance whose storage has no such group.
    return this.#durably.storage.archiving as ArchivingStorage
  }
}

function archivedUpTo({ runId, name, last }: Nullable<ArchivedLogs>): ArchivedLogs | null {
  return runId === null || name === null || last === null ? null : { runId, name, last }
}

async function lastOf(pages: AsyncIterable<readonly LogRecord[]>): Promise<string | null> {
  let last: string | null = null
  for await (const page of pages) last = page.at(-1)?.id ?? last
  return last
}

/** New at each try: whoever writes a second file for a run cannot touch the first. */
function nameFor(runId: string): string {
  const [a = 0, b = 0] = crypto.getRandomValues(new Uint32Array(2))
  const safeId = runId.replaceAll(/[^A-Za-z0-9_-]/g, (char) => `%${char.codePointAt(0)?.toString(16)}`)
  return `${safeId.slice(0, 120)}-${a.toString(36)}${b.toString(36)}`
}
