import {
  type ArchivingStorage,
  type AuditStorage,
  type ClusterStorage,
  type DebounceStorage,
  type EventStorage,
  type ForkStorage,
  LIFECYCLE,
  type Lifecycle,
  type LimitStorage,
  type LogStorage,
  type SettingsStorage,
  type SignalStorage,
  type StatisticsStorage,
  type Storage,
  type WatchStorage,
} from '../port'
import { createEnvironment, InvalidOptionError, type OptionNames, refuseUnknownOptions } from '../base'
import { createArchiving, Strays } from './archiving'
import { Audit, createAudit, createSettings } from './audit'
import { claim } from './claim'
import { createClock } from './clock'
import { createCluster } from './cluster'
import { command } from './commands'
import { commit } from './commit'
import { enqueue } from './enqueue'
import { joinBatch } from './batch'
import { DebounceKeys, enqueueDebounced, RunIds } from './debounce'
import { fork } from './fork'
import { GatheredTable } from './gathered-table'
import { Hints } from './hints'
import { createEvents, createLogs } from './history'
import { claimWithin, createPauses, JobStates, loadOf } from './job-limits'
import { Leads } from './leads'
import type { Memory } from './memory'
import { MessageTable } from './message-table'
import { purge } from './purge'
import { counts, getRun, getRuns, getSteps, nextDue } from './reads'
import { recover } from './recover'
import { renew } from './renew'
import { createRules } from './rules'
import { RunTable } from './run-table'
import { ScheduleTable } from './schedule-table'
import { createStatistics, HourTable } from './statistics'
import { getUnread, sendSignal } from './signals'
import { WorkerTable } from './worker-table'

/** What `createMemoryStorage` takes. */
export interface MemoryStorageOptions {
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number
  /** Ended runs kept for reading, 10,000 by default; the oldest beyond it are dropped with all that belongs to them. */
  readonly keepEnded?: number
}

/** A storage with every capability that needs no rows of an application. */
export interface MemoryStorage extends Storage {
  readonly events: EventStorage
  readonly logs: LogStorage
  readonly signals: SignalStorage
  readonly watch: WatchStorage
  readonly limits: LimitStorage
  readonly forks: ForkStorage
  readonly debounce: DebounceStorage
  readonly archiving: ArchivingStorage
  readonly audit: AuditStorage
  readonly settings: SettingsStorage
  readonly statistics: StatisticsStorage
  readonly cluster: ClusterStorage
}

const OPTIONS: OptionNames<MemoryStorageOptions> = { now: true, keepEnded: true }

/**
 * A storage in the memory of one process: fast, bounded, and gone with the process. It has every capability except
 * `transaction`, for there are no rows of an application that a step could be committed with. An ended run is dropped
 * early only by `keepEnded`, and a child not before its parent has ended.
 */
export function createMemoryStorage(options: MemoryStorageOptions = {}): MemoryStorage {
  refuseUnknownOptions('createMemoryStorage()', options, OPTIONS)
  return createMemoryStorageWith({ ...options, lifecycle: LIFECYCLE })
}

/** Internal: enforces exactly the guards of the given table, so that tests can take one away. */
export function createMemoryStorageWith(
  options: MemoryStorageOptions & { readonly lifecycle: Lifecycle },
): MemoryStorage {
  const { lifecycle, now = Date.now, keepEnded = 10_000 } = options
  if (typeof now !== 'function')
    throw new InvalidOptionError('now must be a function that returns milliseconds since 1970.')
  if (keepEnded !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(keepEnded) && keepEnded >= 0)) {
    throw new InvalidOptionError(`keepEnded must be an integer from 0, or Infinity, not ${String(keepEnded)}.`)
  }
  const rules = createRules(lifecycle)
  const clock = createClock(now)
  const hints = new Hints()
  const strays = new Strays()
  const table = new RunTable({ rules, clock, hints, strays, keepEnded })
  const own = { audit: new Audit(clock), jobs: new JobStates(), leads: new Leads(), schedules: new ScheduleTable() }
  const inbox = { messages: new MessageTable(), gathered: new GatheredTable() }
  const together = { debounceKeys: new DebounceKeys(), joined: new RunIds() }
  const memory: Memory = {
    rules,
    clock,
    hints,
    table,
    strays,
    hours: new HourTable(),
    workers: new WorkerTable(),
    ...own,
    ...inbox,
    ...together,
  }
  return bind(memory)
}

function bind(memory: Memory): MemoryStorage {
  const { clock, hints } = memory
  const read = async <T>(look: () => T): Promise<T> => {
    clock.look()
    return look()
  }
  const write = async <T>(apply: () => T): Promise<T> => {
    clock.look()
    try {
      return apply()
    } finally {
      hints.flush()
    }
  }
  return {
    location: `memory: ${createEnvironment().createId()}`,
    migrate: async () => {},
    enqueue: (runs) => write(() => enqueue(memory, runs)),
    claim: (params) => write(() => claim(memory, params)),
    commit: (commits) => write(() => commit(memory, commits)),
    renew: (leases, leaseMs) => write(() => renew(memory, leases, leaseMs)),
    recover: (params) => write(() => recover(memory, params)),
    command: (order) => write(() => command(memory, order)),
    purge: (params) => write(() => purge(memory, params)),
    getRun: (runId, scope) => read(() => getRun(memory, runId, scope)),
    getRuns: (query) => read(() => getRuns(memory, query)),
    getSteps: (runId, scope) => read(() => getSteps(memory, runId, scope)),
    counts: (query) => read(() => counts(memory, query)),
    nextDue: (jobs) => read(() => nextDue(memory, jobs)),
    events: createEvents(memory),
    logs: createLogs(memory),
    signals: {
      send: (signal) => write(() => sendSignal(memory, signal)),
      getUnread: (runId) => read(() => getUnread(memory, runId)),
    },
    watch: hints,
    statistics: createStatistics(memory, { read, write }),
    forks: { fork: (order) => write(() => fork(memory, order)) },
    debounce: {
      enqueue: (debounced) => write(() => enqueueDebounced(memory, debounced)),
      join: (batched) => write(() => joinBatch(memory, batched)),
    },
    archiving: createArchiving(memory, { read, write }),
    audit: createAudit(memory, { read, write }),
    settings: createSettings(memory, { read, write }),
    limits: {
      claim: (params, limits) => write(() => claimWithin(memory, params, limits)),
      load: (limits) => read(() => loadOf(memory, limits)),
      ...createPauses(memory, write),
    },
    cluster: createCluster(memory, { read, write }),
  }
}
