import type { Instant, LogRecord, Scope } from './records'

/**
 * Where logs are that have left the database. A name is used for one write and never again; it has letters, digits, `-`, `_`,
 * `.` and `%`.
 */
export interface LogArchive {
  /** All of it is there afterwards, to stay, or nothing; nothing also when `pages` throws. */
  write(name: string, pages: AsyncIterable<readonly LogRecord[]>): Promise<void>
  /** In the order of writing. What is not there, or not whole, is a `LogArchiveError`. */
  read(name: string): AsyncIterable<readonly LogRecord[]>
  /** Also what is not there. */
  remove(name: string): Promise<void>
}

/** The place of a run in the order of ending. */
export interface EndCursor {
  readonly finishedAt: Instant
  readonly id: string
}

/** What the archive has of a run. */
export interface ArchivedLogs {
  readonly runId: string
  readonly name: string
  /** The id of the last log there. */
  readonly last: string
}

/** Ended runs that have logs in the database. */
export interface LoggedRuns {
  readonly runs: readonly { readonly id: string; readonly version: number }[]
  /** How far was looked; `null`: there was nothing to look at. */
  readonly last: EndCursor | null
}

/**
 * Logs that leave the database for an archive, the first ones first, once their run refers to a name there. So until the last
 * log that the archive has is gone, the database has it, and what comes after it is not in the archive; from then on that is
 * all that the database has. Each line is shown once, wherever somebody dies. A name is announced before anything is written under it, and taken off
 * that list by the very write that has its run refer to it. So what stays on the list is what no run refers to, and may be
 * removed from the archive, whatever has died in between. The names of runs that are deleted or purged, and those that give
 * way to another, are put on it by the write that does so.
 */
export interface ArchivingStorage {
  /** Of the `limit` runs that come next after `after` in the order of ending, and have ended longer ago than that. */
  findLogged(params: {
    readonly olderThanMs: number
    readonly after: EndCursor | null
    readonly limit: number
  }): Promise<LoggedRuns>
  announce(name: string): Promise<void>
  /**
   * The run refers to `name`. False, and nothing has happened, when it is not as it was in this version, or when the name was
   * given up meanwhile.
   */
  refer(params: { readonly runId: string; readonly version: number; readonly name: string }): Promise<boolean>
  /** The logs that are not in the archive, whose last log is `last`; `null`: it has none. */
  getUnarchived(
    runId: string,
    options: Scope & { readonly last: string | null; readonly limit?: number },
  ): Promise<readonly LogRecord[]>
  /**
   * Removes `limit` of the logs up to `last`, while the run refers to `name`. True: none of them is left, or the run refers to
   * another name.
   */
  removeArchived(params: ArchivedLogs & { readonly limit: number }): Promise<boolean>
  /**
   * Names that no run refers to, nor ever will: this gives up those that were announced longer ago than that. They are
   * told again until they are forgotten.
   */
  giveUp(params: { readonly announcedForMs: number; readonly limit: number }): Promise<readonly string[]>
  /** Nothing of these names is in the archive any more. */
  forget(names: readonly string[]): Promise<void>
}
