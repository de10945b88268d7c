import type { Watch } from './orders'

/** The tables and indexes of a schema, to be read. */
export async function schemaOf(watch: Watch, schema: string): Promise<string> {
  const columns = await watch.query<{ table: string; text: string }>(
    `select c.relname as table, format('%s %s%s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
        case when l.collname <> 'default' then ' collate ' || quote_ident(l.collname) end,
        case when a.attnotnull then ' not null' end, case when a.attidentity = 'a' then ' generated always as identity' end,
        ' default ' || pg_get_expr(d.adbin, d.adrelid)) as text
      from pg_attribute a join pg_class c on c.oid = a.attrelid
      left join pg_collation l on l.oid = a.attcollation left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      where c.relnamespace = $1::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
      order by c.relname, a.attnum`,
    [schema],
  )
  const checks = await watch.query<{ table: string; text: string }>(
    `select r.relname as table, format('constraint %s %s', c.conname, pg_get_constraintdef(c.oid)) as text
      from pg_constraint c join pg_class r on r.oid = c.conrelid
      where c.connamespace = $1::regnamespace and c.contype in ('c', 'f') order by r.relname, c.conname`,
    [schema],
  )
  const options = await watch.query<{ table: string; text: string }>(
    `select relname as table, ' with (' || array_to_string(reloptions, ', ') || ')' as text from pg_class
      where relnamespace = $1::regnamespace and relkind = 'r' and reloptions is not null`,
    [schema],
  )
  const indexes = await watch.query<{ table: string; text: string }>(
    'select tablename as table, indexdef as text from pg_indexes where schemaname = $1 order by tablename, indexname',
    [schema],
  )
  const of = (rows: readonly { table: string; text: string }[], table: string) =>
    rows.filter((row) => row.table === table).map(({ text }) => text.replaceAll(`${schema}.`, ''))
  const tables = [...new Set(columns.map(({ table }) => table))]
  return tables
    .map((table) => {
      const body = [...of(columns, table), ...of(checks, table)].map((line) => `  ${line}`).join(',\n')
      const ending = of(options, table).join('')
      return [`create table ${table} (\n${body}\n)${ending};`, ...of(indexes, table).map((text) => `${text};`)].join(
        '\n',
      )
    })
    .join('\n\n')
    .concat('\n')
}
