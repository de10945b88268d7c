import { InvalidOptionError } from '@coji/durably-core'
import { type OptionNames, refuseUnknownOptions } from '@coji/durably-core/extend'
import {
  type CompiledQuery,
  type Kysely,
  PostgresAdapter,
  PostgresDriver,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import pg from 'pg'
import type { DialectHooks, DurablyDialect, Rows, Sender } from '../dialect'
import { PostgresListener } from './postgres-listener'
import { SMALLEST_POOL } from './caller-places'
import { PostgresPool, QUERY_TIMEOUT_MS } from './postgres-pool'
import { setUpSession } from './postgres-session'

/** How `postgres()` reaches the database: a connection string, or a pool of the application. */
export type PostgresConfig = PostgresOptions &
  (
    | {
        /** `postgres://user:password@host/database`. The pool is durably's own and closed with it. */
        readonly connectionString: string
        /** Connections of this process at most, 10 by default; one more listens. */
        readonly max?: number
      }
    | {
        /** A pool of `pg`. It keeps its settings and is left open. */
        readonly pool: pg.Pool
      }
  )

/** What `postgres()` takes whether the pool is its own or not. */
export interface PostgresOptions {
  /** Prepare statements once per connection, as by default. Not behind a pooler that lends connections by transaction. */
  readonly prepare?: boolean
  /** The schema of durably's tables, which `migrate()` creates where it is missing. Without it: the first of the `search_path`. */
  readonly schema?: string
  /** Hear of due runs at once through LISTEN and NOTIFY, as by default. Without it they are found by polling. */
  readonly listen?: boolean
}

const DEFAULT_MAX = 10

/** Postgres through `pg`: prepared statements, LISTEN and NOTIFY, and errors of connections that nobody else would hear. */
export function postgres(config: PostgresConfig): DurablyDialect {
  refuseBadConfig(config)
  const isOwn = 'connectionString' in config
  const pool = isOwn ? ownPool(config) : config.pool
  const connections = new PostgresPool({ pool, prepare: config.prepare ?? true, isOwn })
  return {
    durablyHooks: hooks(connections, config),
    createAdapter: () => new PostgresAdapter(),
    // The pool is closed by its owner.
    createDriver: () => new PostgresDriver({ pool: { connect: () => connections.lend(), end: async () => {} } }),
    createIntrospector: (db: Kysely<unknown>) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

const CONFIG: OptionNames<PostgresConfig> = {
  connectionString: true,
  max: true,
  pool: true,
  prepare: true,
  schema: true,
  listen: true,
}

function refuseBadConfig(config: PostgresConfig): void {
  if (typeof config === 'string') throw new InvalidOptionError('postgres() takes its URL as { connectionString }.')
  if (typeof Object(config).connect === 'function') {
    throw new InvalidOptionError('postgres() takes a pool of pg as { pool }.')
  }
  refuseUnknownOptions('postgres()', config, CONFIG)
  const { connectionString, pool, schema } = config as unknown as Readonly<Record<string, unknown>>
  if (schema !== undefined) refuseBadSchema(schema)
  if (typeof connectionString === 'string' && connectionString !== '' && pool === undefined) return
  if (typeof pool === 'object' && pool !== null && connectionString === undefined) return
  throw new InvalidOptionError('postgres() needs either a connectionString or a pool of pg.')
}

/** Postgres cuts longer names off without a word. */
const LONGEST_NAME = 63

function refuseBadSchema(schema: unknown): void {
  const length = typeof schema === 'string' ? new TextEncoder().encode(schema).length : 0
  if (length > 0 && length <= LONGEST_NAME && !String(schema).includes('\0')) return
  throw new InvalidOptionError(`schema must be a name of 1 to ${LONGEST_NAME} bytes, not ${JSON.stringify(schema)}.`)
}

function ownPool({ connectionString, max = DEFAULT_MAX }: { connectionString: string; max?: number }): pg.Pool {
  if (!Number.isSafeInteger(max) || max < SMALLEST_POOL) {
    throw new InvalidOptionError(`max must be an integer of at least ${SMALLEST_POOL}, not ${max}.`)
  }
  return new pg.Pool({
    connectionString,
    max,
    application_name: 'durably',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 5000,
    query_timeout: QUERY_TIMEOUT_MS,
    allowExitOnIdle: true,
    verify: (client, done) =>
      void setUpSession(client).then(
        () => done(),
        (error: Error) => done(error),
      ),
  })
}

function hooks(connections: PostgresPool, config: PostgresConfig): DialectHooks {
  return {
    location: null,
    schema: config.schema ?? null,
    batch: (queries: readonly CompiledQuery[], waitMs: number, sender: Sender): Promise<readonly Rows[]> =>
      connections.send(queries, waitMs, sender),
    ...(config.listen !== false && {
      notifications: {
        async send(channel, payload) {
          await connections.notify(channel, payload)
        },
        listen(channel, listener) {
          const own = new PostgresListener({ connect: () => connections.newClient(), channel, listener })
          own.start()
          return () => own.stop()
        },
      },
    }),
    close: () => connections.close(),
  }
}
