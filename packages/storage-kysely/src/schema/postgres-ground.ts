import { MigrationError } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { isForbidden } from '../connection'
import type { Reader } from '../read'
import type { SqlContext } from '../statement'

/** What has to be there before the first table of durably's on Postgres. */
export interface Ground {
  /** Sent before the tables are created. */
  readonly statements: readonly CompiledQuery[]
  /** What such an error means, if it is about the ground. */
  explain(error: unknown): MigrationError | null
}

/** There are tables already, or nothing has to be there. */
export const FIRM: Ground = { statements: [], explain: () => null }

/** Looks at the database before the first table is created in it, and refuses one that could not hold every text. */
export async function surveyGround({ db, dialect, schema }: SqlContext, reader: Reader): Promise<Ground> {
  if (!dialect.isServer) return FIRM
  const query = sql`select current_setting('server_encoding') as encoding, current_database()::text as name,
    exists (select 1 from pg_catalog.pg_namespace where nspname = cast(${schema ?? ''} as text)) as "hasSchema",
    pg_catalog.has_database_privilege(current_database(), 'create') as "mayCreate"`
  const [row] = await reader.read(query.compile(db))
  const { encoding, name, hasSchema, mayCreate } = row as Readonly<Record<string, unknown>>
  if (encoding !== 'UTF8') {
    throw new MigrationError(
      `The database ${String(name)} has the encoding ${String(encoding)}, which cannot hold every text: use one that was ` +
        "made with create database … encoding 'UTF8' template template0.",
    )
  }
  return schema === null || hasSchema === true
    ? FIRM
    : groundIn(db.schema.createSchema(schema).ifNotExists(), { schema, mayCreate: mayCreate === true })
}

interface Missing {
  readonly schema: string
  /** Whether this role may create schemas. */
  readonly mayCreate: boolean
}

function groundIn(creation: { compile(): CompiledQuery }, { schema, mayCreate }: Missing): Ground {
  return {
    statements: [creation.compile()],
    explain: (error) =>
      isForbidden(error) && !mayCreate
        ? new MigrationError(
            `There is no schema ${schema}, and this role may not create it. Let another one do so: ` +
              `create schema "${schema}" authorization the_role.`,
            { cause: error },
          )
        : null,
  }
}
