import { InvalidOptionError } from '@coji/durably-core'
import type {
  ArchivingStorage,
  AuditStorage,
  DebounceStorage,
  ClusterStorage,
  EventStorage,
  ForkStorage,
  LimitStorage,
  LogStorage,
  SettingsStorage,
  SignalStorage,
  StatisticsStorage,
  Storage,
  TransactionStorage,
  WatchStorage,
} from '@coji/durably-core/storage'
import { CompiledQuery, type Dialect, Kysely, sql, type Transaction } from 'kysely'
import {
  type Claims,
  createClaim,
  createCommand,
  createCommit,
  createEnqueue,
  createLimits,
  createPurge,
  createRecover,
  createRenew,
  createSignals,
  createTransactions,
  keepOpenOn,
  type Limits,
  withPlainEnds,
} from './write'
import { createCluster } from './cluster'
import { type DialectHooks, dialectOf, type Durability, type DurablyDatabase, hooksOf, tableRefs } from './dialect'
import { type DurabilityReport, Executor, gated, reportDurability } from './connection'
import { assertBareSqlocalIsKept } from './drivers/sqlocal-kept'
import { createGroups, type Passed, tellers, type Told } from './groups'
import { createEvents, createLogs, createReads, reportWork, STRETCH, type WorkReport } from './read'
import { FENCES, type Fences, type SqlContext } from './statement'
import { requireOptions } from './given-database'
import { channelOf, HintRelay, notifyDue, Watchers } from './watch'
import { migrate, reportSchema, SchemaGate, type SchemaReport } from './schema'

/** Where the runs are kept. */
export type KyselyStorageOptions<DB = DurablyDatabase> = {
  /** Before each table name, `durably_` by default. */
  readonly tablePrefix?: string
  /**
   * `safe` (the default) or `fast`, set by `betterSqlite3()` and `libsql()` when they connect. A bare dialect and a
   * `db` keep the settings they come with; `reportDurability()` tells which.
   */
  readonly durability?: Durability
} & (
  | {
      /** A Kysely dialect for SQLite or Postgres, or what one of the driver helpers returns. */ readonly dialect: Dialect
    }
  | { /** The application's own Kysely instance. It is left open. */ readonly db: Kysely<DB> }
)

/** A `Storage` in a SQL database, with every capability. */
export interface KyselyStorage<DB = DurablyDatabase> extends Storage<Transaction<DB>> {
  readonly db: Kysely<DB>
  checkSchema(): Promise<void>
  close(): Promise<void>
  /** The durability settings in force, read from the connection. */
  reportDurability(): Promise<DurabilityReport>
  /** How far the tables are; reads and changes nothing, also where there are none. */
  reportSchema(): Promise<SchemaReport>
  /** Which run has waited longest, and which workers hold runs. */
  reportWork(): Promise<WorkReport>
  readonly events: EventStorage
  readonly logs: LogStorage
  readonly signals: SignalStorage
  readonly transaction: TransactionStorage<Transaction<DB>>
  readonly watch: WatchStorage
  readonly limits: LimitStorage
  readonly forks: ForkStorage
  readonly debounce: DebounceStorage<Transaction<DB>>
  readonly archiving: ArchivingStorage
  readonly audit: AuditStorage
  readonly settings: SettingsStorage
  readonly statistics: StatisticsStorage
  readonly cluster: ClusterStorage<Transaction<DB>>
}

/**
 * Keeps runs in a SQLite or Postgres database through Kysely.
 *
 * ```ts
 * const storage = createKyselyStorage({ dialect: betterSqlite3('app.db') })
 * await storage.migrate()
 * ```
 */
export function createKyselyStorage<DB = DurablyDatabase>(options: KyselyStorageOptions<DB>): KyselyStorage<DB> {
  requireOptions(options as unknown as KyselyStorageOptions<never>)
  return createKyselyStorageWith({ ...options, fences: FENCES })
}

interface InternalOptions {
  readonly fences: Fences
  readonly monotonic?: () => number
  readonly stretch?: number
}

/** Internal: writes under the given fences, so that tests can take one away, and searches in stretches of the given length. */
export function createKyselyStorageWith<DB = DurablyDatabase>(
  options: KyselyStorageOptions<DB> & InternalOptions,
): KyselyStorage<DB> {
  const { tablePrefix = 'durably_', durability = 'safe', fences, stretch = STRETCH } = options
  const { monotonic = () => performance.now() } = options
  if (durability !== 'safe' && durability !== 'fast') {
    throw new InvalidOptionError(`durability must be 'safe' or 'fast', not '${String(durability)}'.`)
  }
  const { dialect = null, db: given } = options as { dialect?: Dialect; db?: Kysely<DB> }
  const hooks = dialect === null ? null : hooksOf(dialect)
  hooks?.configure?.({ durability })
  const db = dialect === null ? (given as Kysely<DB>) : new Kysely<DB>({ dialect: gated(dialect) })
  // Statements of durably know no tables of the application, and none of its plugins.
  const plain = db.withoutPlugins() as unknown as Kysely<unknown>
  const schema = hooks?.schema ?? null
  const context: SqlContext = {
    db: plain,
    prefix: tablePrefix,
    schema,
    tables: tableRefs(tablePrefix, schema),
    dialect: dialectOf(db.getExecutor().adapter),
    fences,
    stretch,
  }
  const { hasOneWriter, isServer } = context.dialect
  if (isServer) refuseLongPrefix(tablePrefix)
  const versions = context.tables.schema_versions
  const executor = new Executor({
    db: plain,
    hooks,
    // A long time-out of the driver would block the event loop; waiting is the executor's job.
    greeting: dialect === null || isServer ? null : CompiledQuery.raw('pragma busy_timeout = 20'),
    firstWrite: hasOneWriter ? sql`update ${versions} set version = version where version < 0`.compile(plain) : null,
    hasOneWriter,
  })
  const location = hooks?.database === undefined ? undefined : `${hooks.database} ${tablePrefix}*`
  const watchers = new Watchers()
  const relay = relayOf({ hooks, watchers, tablePrefix })
  const close = async () => {
    await relay?.close()
    await executor.close()
    if (dialect !== null) await db.destroy()
    await hooks?.close?.()
  }
  const bound = bind<DB>({ context, executor, watchers, relay, monotonic })
  const migrate = async (): Promise<void> => {
    if (dialect !== null && hooks === null && !isServer) await assertBareSqlocalIsKept(plain)
    try {
      await bound.migrate()
    } catch (error) {
      if (hooks?.isOver?.(error) !== true) throw error
      // The page that calls this does so once, and without it has nothing.
      await migrate()
    }
  }
  const soleInstance = hooks?.hasSoleInstance === true ? location : undefined
  return { db, ...bound, location, soleInstance, migrate, close }
}

/** Postgres cuts names after 63 bytes without a word; two indexes of the same table could have the same name then. */
const LONGEST_PREFIX = 40

function refuseLongPrefix(tablePrefix: string): void {
  const length = new TextEncoder().encode(tablePrefix).length
  if (length <= LONGEST_PREFIX) return
  throw new InvalidOptionError(`On Postgres tablePrefix may have ${LONGEST_PREFIX} bytes, not ${length}.`)
}

interface RelayParams {
  readonly hooks: DialectHooks | null
  readonly watchers: Watchers
  readonly tablePrefix: string
}

/** Instances on the same tables hear of each other. */
function relayOf({ hooks, watchers, tablePrefix }: RelayParams): HintRelay | null {
  if (hooks?.notifications === undefined) return null
  const relay = new HintRelay({ notifications: hooks.notifications, channel: channelOf(tablePrefix), watchers })
  watchers.connect(relay)
  return relay
}

interface BindParams {
  readonly context: SqlContext
  readonly executor: Executor
  readonly watchers: Watchers
  readonly relay: HintRelay | null
  readonly monotonic: () => number
}

function bind<DB>({ context, executor, watchers, relay, monotonic }: BindParams) {
  const reads = createReads(context)
  const enqueuer = createEnqueue(context)
  const commits = createCommit(context, enqueuer.findConflict)
  const limits = createLimits(context)
  const { claim, claimWithin } = createClaim(context, limits, watchers)
  const recover = createRecover(context, monotonic)
  const [renew, command, purge] = [createRenew(context), createCommand(context, reads), createPurge(context)]
  const [signals, events] = [createSignals(context, executor, reads), createEvents(context, executor)]
  const told = tellers(watchers)
  const gate = new SchemaGate({ context, monotonic })
  const passed = passingThrough(gate, executor)
  const transactions = createTransactions<DB>({
    ...{ dialect: context.dialect, executor, commits, enqueuer, watchers, gate },
    ...{ notifyDue: notifyDue(context), keepOpen: keepOpenOn(context) },
  })
  const commit = withPlainEnds(context, commits)
  return {
    migrate: () => gate.noting(migrate(context, executor)),
    checkSchema: () => gate.look(executor),
    ...reports(context, executor),
    async enqueue(runs) {
      if (runs.length === 0) return []
      const answers = await passed(() => enqueuer.enqueueAtOnce(executor.callers, runs))
      return told.due(answers, () => answers.map(({ run }) => run.id))
    },
    claim: async (params) =>
      told.changed(await passed(() => claim(executor, params)), (runs) => runs.map(({ id }) => id)),
    commit: async (list) => told.left(await commit(executor, list), list),
    renew: (leases, leaseMs) => renew(executor, leases, leaseMs),
    recover: async (params) =>
      told.due(await passed(() => recover(executor, params)), (runs) => runs.map(({ id }) => id)),
    async command(order) {
      const answer = await passed(() => command(executor, order))
      if (order.kind === 'cancel' && answer.applied && answer.run.status === 'running') watchers.noteCancel(order.runId)
      return told.due(answer, () => [order.runId])
    },
    purge: (params) => passed(() => purge(executor.removers, params)),
    getRun: (runId, scope) => reads.getRun(executor.callers, runId, scope),
    getRuns(query) {
      // Who asks for runs by their ids waits for them to end.
      if (query.ids !== undefined) relay?.listen()
      return reads.getRuns(executor.callers, query)
    },
    getSteps: (runId, scope) => reads.getSteps(executor, runId, scope),
    counts: (query) => reads.counts(executor.callers, query),
    nextDue(jobs) {
      // Who waits for the next run wants to hear of it.
      relay?.listen()
      return reads.nextDue(executor, jobs)
    },
    events: {
      ...events,
      tail(cursors, limitEach) {
        relay?.listen()
        return events.tail(cursors, limitEach)
      },
    },
    logs: createLogs(context, executor),
    signals: {
      ...signals,
      send: async (signal) => told.due(await passed(() => signals.send(signal)), () => [signal.runId]),
    },
    transaction: transactions.storage,
    watch: watchers,
    ...createGroups<DB>(context, { executor, told, passed, within: transactions.writeWithin }),
    cluster: createCluster<DB>({
      ...{ context, executor, passed, within: transactions.writeWithin },
      noteDue: (ids) => told.due(ids, () => ids),
      noteCancel: (runId) => watchers.noteCancel(runId),
    }),
    limits: limitStorage({ executor, watchers, limits, claimWithin, told, passed }),
  } satisfies Omit<KyselyStorage<DB>, 'db' | 'close'>
}

/** Has writes wait for a look at the version of the tables, where one is due. */
function passingThrough(gate: SchemaGate, executor: Executor): Passed {
  return async (write) => {
    const looking = gate.pass(executor)
    if (looking !== undefined) await looking
    return write()
  }
}

function reports(context: SqlContext, executor: Executor) {
  return {
    reportDurability: () => reportDurability(context, executor),
    reportSchema: () => reportSchema(context, executor),
    reportWork: () => reportWork(context, executor.callers),
  }
}

interface LimitParams extends Pick<BindParams, 'executor' | 'watchers'> {
  readonly limits: Limits
  readonly claimWithin: Claims['claimWithin']
  readonly told: Told
  readonly passed: Passed
}

function limitStorage({ executor, watchers, limits, claimWithin, told, passed }: LimitParams): LimitStorage {
  const { callers } = executor
  return {
    async claim(params, jobLimits) {
      const answer = await passed(() => claimWithin(executor, params, jobLimits))
      return told.changed(answer, ({ runs }) => runs.map(({ id }) => id))
    },
    load: (jobLimits) => limits.load(callers, jobLimits),
    pause: (jobName, audit) => passed(() => limits.pause(callers, jobName, audit)),
    async resume(jobName, audit) {
      await passed(() => limits.resume(callers, jobName, audit))
      watchers.noteDue()
    },
    paused: () => limits.paused(callers),
  }
}
