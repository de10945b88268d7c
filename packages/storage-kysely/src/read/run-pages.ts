import type { RunQuery } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Rows } from '../dialect'
import { compileQuery, type Row, runColumns, runsBy, type Sql, type SqlContext } from '../statement'
import type { Reader } from './reader'
import { isOfNothing } from './run-conditions'
import { answersOf, type Question, runsIn, searchOf, type Stretch } from './run-search'
import { newestFirst } from './run-walks'
import { sureWay, waysOf } from './run-ways'
import { inTurns } from './turns'

/** The runs of a query, newest first. */
export async function readRunRows(context: SqlContext, reader: Reader, query: RunQuery): Promise<readonly Row[]> {
  const search = searchOf(query)
  if (isOfNothing(search.conditions)) return []
  const { limit } = query
  const way = sureWay(waysOf(context, search.conditions))
  if (way !== undefined) {
    const stretch = { way, part: search.part, isUnmeasured: limit === undefined }
    return reader.read(compileQuery(context, pageQuery(context, stretch, limit)))
  }
  const pages: Rows[] = []
  let left = limit
  const ask = (stretch: Stretch) => pageOf(context, stretch, left)
  for await (const page of answersOf({ context, reader: inTurns(reader), search, ask })) {
    pages.push(page)
    if (left !== undefined) left -= page.length
    if (left === 0) break
  }
  return pages.flat()
}

function pageOf(context: SqlContext, stretch: Stretch, limit: number | undefined): Question {
  return { query: pageQuery(context, stretch, limit), order: sql`order by found.created_at desc, found.id desc` }
}

function pageQuery(context: SqlContext, stretch: Stretch, limit: number | undefined): Sql {
  const { walks } = stretch.way
  const limited = limit === undefined ? sql`` : sql`limit ${limit}`
  const [only] = walks
  if (only !== undefined && walks.length === 1) {
    return sql`select ${runColumns(context, 'r')} ${runsIn(context, stretch, { walk: only, limit })} ${newestFirst(context, only)} ${limited}`
  }
  const newest = walks.map((walk) => {
    const page = sql`${runsIn(context, stretch, { walk, limit })} ${newestFirst(context, walk)} ${limited}`
    return sql`select * from (select r.id, r.created_at ${page}) as newest`
  })
  const found = sql`select n.id from (${sql.join(newest, sql` union all `)}) as n order by n.created_at desc, n.id desc ${limited}`
  return sql`select ${runColumns(context, 'r')} from ${runsBy(context, 'primary')}
    where r.id in (${found}) order by r.created_at desc, r.id desc ${limited}`
}
