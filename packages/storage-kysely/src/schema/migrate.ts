import { MigrationError, NotMigratedError, SchemaTooNewError } from '@coji/durably-core/storage'
import { CompiledQuery, sql } from 'kysely'
import { type Executor, isConstraintError, isMissingTable } from '../connection'
import { channelOf } from '../watch'
import { COLUMN_TYPES, type Migration, MIGRATIONS, SCHEMA_VERSION } from '../migrations'
import { FIRM, type Ground, surveyGround } from './postgres-ground'
import type { Reader } from '../read'
import { compileQuery, type SqlContext } from '../statement'

interface SchemaState {
  /** 0 without tables. */
  readonly version: number
  readonly minReader: number
}

/** How far the tables are, and how far this code would bring them. */
export interface SchemaReport {
  /** 0 without tables. */
  readonly version: number
  /** The oldest version whose code may work with the tables as they are. */
  readonly minReader: number
  /** To which `migrate()` brings them; from then on `minReader` is as below. */
  readonly newest: { readonly version: number; readonly minReader: number }
}
const VERSIONS_END = { sqlite: 'strict', postgres: '' } as const

/** More than the number of processes that can be one migration ahead of this one. */
const MAX_ROUNDS = MIGRATIONS.length + 10

/** To index a large table takes as long as it takes. */
const WITHOUT_LIMIT = CompiledQuery.raw('set local statement_timeout = 0')

/** `create table if not exists` is not safe to run twice at a time on Postgres. The lock ends with the transaction. */
const MIGRATION_LOCK = CompiledQuery.raw("select pg_advisory_xact_lock(hashtext('durably'), 0)")

/**
 * Brings the tables up to date. Each migration is one atomic list that starts by taking its version number, which is a
 * primary key: of any number of processes one applies it, the others see that it is there. Where there are no tables yet all
 * of them are one list: nobody waits for a lock, and in a tab each commit is a matter of the disk.
 */
export async function migrate(context: SqlContext, executor: Executor): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const state = await readState(context, executor)
    if (state.minReader > SCHEMA_VERSION) throw new SchemaTooNewError(state.minReader, SCHEMA_VERSION)
    const isNew = state.version === 0
    const missing = MIGRATIONS.filter(({ version }) => version > state.version)
    const [next] = missing
    if (next === undefined) return
    const ground = isNew ? await surveyGround(context, executor) : FIRM
    try {
      await executor.write(statementsOf(isNew ? missing : [next], context, ground))
    } catch (error) {
      const now = await readState(context, executor)
      if (now.version < next.version) throw ground.explain(error) ?? describe(error, next)
    }
  }
  throw new MigrationError('The tables keep changing while they are migrated.')
}

/** Throws unless this code can work with the tables as they are. */
export async function checkSchema(context: SqlContext, reader: Reader): Promise<void> {
  const { version, minReader } = await readState(context, reader)
  if (minReader > SCHEMA_VERSION) throw new SchemaTooNewError(minReader, SCHEMA_VERSION)
  if (version < SCHEMA_VERSION) throw new NotMigratedError(version, SCHEMA_VERSION)
}

/** Reads, and changes nothing. */
export async function reportSchema(context: SqlContext, reader: Reader): Promise<SchemaReport> {
  const minReader = Math.max(...MIGRATIONS.map((migration) => migration.minReader))
  return { ...(await readState(context, reader)), newest: { version: SCHEMA_VERSION, minReader } }
}

async function readState({ db, tables, prefix }: SqlContext, reader: Reader): Promise<SchemaState> {
  const table = `${prefix}schema_versions`
  const query =
    sql`select max(version) as version, max(min_reader) as min_reader from ${tables.schema_versions}`.compile(db)
  try {
    const [row] = await reader.read(query)
    return { version: Number(row?.['version'] ?? 0), minReader: Number(row?.['min_reader'] ?? 0) }
  } catch (error) {
    if (error instanceof NotMigratedError || isMissingTable(error)) return { version: 0, minReader: 0 }
    if (error instanceof Error && /no such column|column .* does not exist/i.test(error.message)) {
      throw new MigrationError(
        `There is a table ${table} that is not durably's. Choose another tablePrefix, or rename that table.`,
        { cause: error },
      )
    }
    throw error
  }
}

function statementsOf(migrations: readonly Migration[], context: SqlContext, ground: Ground): CompiledQuery[] {
  const { dialect, prefix } = context
  const createVersions = schemaOf(context)
    .createTable(`${prefix}schema_versions`)
    .ifNotExists()
    .addColumn('version', 'integer', (column) => column.primaryKey().notNull())
    .addColumn('applied_at', COLUMN_TYPES[dialect.name].instant, (column) => column.notNull())
    .addColumn('min_reader', 'integer', (column) => column.notNull())
    .modifyEnd(sql.raw(VERSIONS_END[dialect.name]))
  return [
    ...(dialect.hasOneWriter ? [] : [WITHOUT_LIMIT, MIGRATION_LOCK]),
    ...ground.statements,
    CompiledQuery.raw(createVersions.compile().sql),
    ...migrations.flatMap((migration) => stepsOf(migration, context)),
  ]
}

function schemaOf({ db, schema }: SqlContext) {
  return schema === null ? db.schema : db.schema.withSchema(schema)
}

/** Its number, and then what it changes. */
function stepsOf(migration: Migration, context: SqlContext): CompiledQuery[] {
  const { db, dialect, prefix, tables } = context
  const take = sql`insert into ${tables.schema_versions} (version, applied_at, min_reader)
    values (${migration.version}, ${dialect.now}, ${migration.minReader})`
  const name = (table: string) => prefix + table
  const written = (table: string) =>
    (context.schema === null ? sql.id(name(table)) : sql.id(context.schema, name(table))).compile(db).sql
  const build = migration.build({
    ...{ schema: schemaOf(context), name, written, dialect: dialect.name },
    ...{ types: COLUMN_TYPES[dialect.name], channel: channelOf(prefix) },
  })
  return [compileQuery(context, take), ...build.map((builder) => CompiledQuery.raw(builder.compile().sql))]
}

function describe(error: unknown, migration: Migration): unknown {
  const message = error instanceof Error ? error.message : String(error)
  const [, table] = /(?:table|index|relation|function) "?([^\s"]+)"? already exists/i.exec(message) ?? []
  if (table !== undefined) {
    return new MigrationError(
      `There is a ${table} already that is not durably's. Choose another tablePrefix, or rename it.`,
      { cause: error },
    )
  }
  if (!isConstraintError(error)) return error
  return new MigrationError(`Migration ${migration.version} failed: ${message}`, { cause: error })
}
