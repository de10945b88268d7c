import { InvalidOptionError, type Plugin } from '@coji/durably-core'
import { type OptionNames, type RecordedHistory, refuseUnknownOptions } from '@coji/durably-core/extend'

/** What `withLogPersistence` keeps. */
export interface LogPersistenceOptions {
  /** What is stored; what it leaves out is not. Without it: all logs and all events. */
  readonly include?: RecordedHistory | undefined
}

const OPTIONS: OptionNames<LogPersistenceOptions> = { include: true }

/**
 * Stores what jobs log and what happens to runs, in the same writes as the runs themselves, for `getLogs()` and
 * `getEvents()`. It stays when the run ends and goes when the run is deleted or purged.
 */
export function withLogPersistence(options: LogPersistenceOptions = {}): Plugin {
  refuseUnknownOptions('withLogPersistence()', options, OPTIONS)
  const { include } = options
  if (include !== undefined && (typeof include !== 'object' || include === null)) {
    throw new InvalidOptionError('include must say which logs and events to keep.')
  }
  return { name: 'log-persistence', records: include ?? { logs: true, events: true } }
}
