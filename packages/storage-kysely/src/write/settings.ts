import type { AuditNote, Json } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Rows } from '../dialect'
import type { Reader } from '../read'
import { insertNote, type NoteName, type Noted, withNote } from './audit'
import { rowsOf, type Sql, type SqlContext, statement, valueOf, type WriteTarget } from '../statement'

export type Settings = ReturnType<typeof createSettings>

type Changes = Readonly<Record<string, Json | null>>

export function createSettings(context: SqlContext) {
  const { tables, dialect } = context
  const read = statement<never>(context, () => sql`select ${dialect.columns('settings')} from ${tables.settings}`)
  const remove = statement<'ids'>(
    context,
    (p) => sql`delete from ${tables.settings} where name in (select value from ${dialect.listOf(p('ids'))})`,
  )
  const put = statement<'settings'>(context, (p) => {
    const value = valueOf(context, 't')
    return sql`insert into ${tables.settings} (name, value, updated_at)
      select ${value('name')}, ${value('value')}, ${dialect.now} from ${rowsOf(context, p('settings'), ['name', 'value'])}
      where true on conflict (name) do update set value = excluded.value, updated_at = excluded.updated_at`
  })
  const noted = notedChange(context)

  return {
    async get(reader: Reader): Promise<Readonly<Record<string, Json>>> {
      return toSettings(await reader.read(read.bind({})))
    },
    async set(target: WriteTarget, changes: Changes, audit: AuditNote | undefined) {
      const names = Object.keys(changes)
      const gone = names.filter((name) => changes[name] === null)
      const kept = names.filter((name) => changes[name] !== null).map((name) => ({ name, value: changes[name] }))
      const change = [remove.bind({ ids: JSON.stringify(gone) }), put.bind({ settings: JSON.stringify(kept) })]
      const list = withNote(audit, noted, { values: { ids: JSON.stringify(names) }, list: change })
      const results = await target.write([...list, read.bind({})])
      return toSettings(results.at(-1) ?? [])
    },
  }
}

function notedChange(context: SqlContext): Noted<'ids'> {
  const { tables, dialect } = context
  const some = (p: (name: 'ids') => Sql) =>
    dialect.toJson(sql`(select ${dialect.objectOf(sql`name`, dialect.nested(sql`value`))} from ${tables.settings}
      where name in (select value from ${dialect.listOf(p('ids'))}))`)
  return {
    before: statement<'ids' | NoteName>(context, (p) => {
      const of = { tenant: sql`''`, target_kind: sql`'settings'`, target: sql`''`, before: some(p) }
      return insertNote(context, p, { of, from: sql`` })
    }),
    after: statement<'ids' | NoteName>(
      context,
      (p) => sql`update ${tables.audit} set after = ${some(p)} where id = ${p('noteId')}`,
    ),
  }
}

function toSettings(rows: Rows): Readonly<Record<string, Json>> {
  return Object.fromEntries(rows.map((row) => [String(row['name']), String(row['value'])]))
}
