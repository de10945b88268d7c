import type { AuditNote, AuditQuery, AuditRecord } from '@coji/durably-core/storage'
import type { CompiledQuery } from 'kysely'
import { sql } from 'kysely'
import { type Listing, type Reader, readListing } from '../read'
import {
  type Sql,
  type SqlContext,
  type SqlValue,
  type Statement,
  statement,
  toAudit,
  type WriteTarget,
} from '../statement'

export type NoteName = 'noteId' | 'actor' | 'action'

/** What a list of statements begins and ends with that leaves a note of what it does. */
export interface Noted<TName extends string> {
  readonly before: Statement<TName | NoteName>
  readonly after: Statement<TName | NoteName>
}

export function noteValues({ id, actor, action }: AuditNote): Record<NoteName, SqlValue> {
  return { noteId: id, actor, action }
}

/** The list with its note around it, if it has one. */
export function withNote<TName extends string>(
  note: AuditNote | undefined,
  { before, after }: Noted<TName>,
  { values, list }: { readonly values: Record<TName, SqlValue>; readonly list: readonly CompiledQuery[] },
): readonly CompiledQuery[] {
  if (note === undefined) return list
  const all = { ...noteValues(note), ...values } as Record<TName | NoteName, SqlValue>
  return [before.bind(all), ...list, after.bind(all)]
}

/** A new record, with what `columns` say of it; `rest` is what they are read from. */
export function insertNote(
  { tables, dialect }: SqlContext,
  p: (name: NoteName) => Sql,
  {
    of,
    from,
  }: {
    readonly of: Readonly<Record<'tenant' | 'target_kind' | 'target' | 'before', Sql>> & { readonly after?: Sql }
    readonly from: Sql
  },
): Sql {
  const { after } = of
  return sql`insert into ${tables.audit} (id, at, actor, action, tenant, target_kind, target, before${after === undefined ? sql`` : sql`, after`})
    select ${p('noteId')}, ${dialect.now}, ${p('actor')}, ${p('action')},
      ${of.tenant}, ${of.target_kind}, ${of.target}, ${of.before}${after === undefined ? sql`` : sql`, ${after}`} ${from}`
}

/** What is kept of the run `r`, as `auditViewOf` says. */
export function runView({ dialect }: SqlContext): Sql {
  return dialect.record({
    status: sql`r.status`,
    attempt: sql`r.attempt`,
    waitingFor: dialect.property(sql`r.waiting_for`, 'kind'),
    cancelRequestedAt: dialect.read(sql`r.cancel_requested_at`, 'instant'),
  })
}

export type Audit = ReturnType<typeof createAudit>

export function createAudit(context: SqlContext) {
  const { tables, dialect } = context
  const purge = statement<'olderThanMs' | 'limit'>(
    context,
    (p) =>
      sql`delete from ${tables.audit} where ${dialect.isAmong(
        sql`id`,
        sql`select a.id from ${tables.audit} as a where a.at < ${dialect.nowPlus(sql`(- ${p('olderThanMs')})`)}
        order by a.at, a.id limit ${p('limit')}`,
      )} returning id`,
  )
  return {
    async list(reader: Reader, query: AuditQuery): Promise<readonly AuditRecord[]> {
      const { limit, cursor } = query
      const page = { limit, after: cursor === undefined ? undefined : ([cursor.at, cursor.id] as const) }
      return (await readListing({ context, reader, listing: listingOf(query) }, page)).map(toAudit)
    },
    async purge(target: WriteTarget, params: { readonly olderThanMs: number; readonly limit: number }) {
      const [rows = []] = await target.write([purge.bind(params)])
      return rows.length
    },
  }
}

function listingOf({ target, limit: _, cursor: __, ...others }: AuditQuery): Listing {
  return {
    ...{ table: 'audit', index: target === undefined ? 'audit_at' : 'audit_target', isNewestFirst: true },
    place: [
      { name: 'at', type: 'instant' },
      { name: 'id', type: 'text' },
    ],
    within: target === undefined ? [] : [sql`m.target = ${target}`],
    conditions: Object.entries(others).map(([name, value]) => sql`${sql.ref(`m.${name}`)} = ${value}`),
  }
}
