import type { LogRecord, LogStorage } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import type { Reader } from './reader'
import { inTenant } from './reads'
import { readPages } from './pages'
import { inTurns } from './turns'
import { type Sql, type SqlContext, type SqlValue, statement, toLog } from '../statement'

type PageName = 'runId' | 'tenant' | 'limit'

interface Part {
  readonly tenant?: string
  readonly limit?: number
}

/** Reads the logs of a run in the order of writing, page by page. */
export function createLogPages(context: SqlContext) {
  const { tables, dialect } = context
  const order = dialect.writeOrder('l')
  const behind = <TName extends 'afterId' | 'place'>(place: (p: (name: TName) => Sql) => Sql) =>
    statement<PageName | TName>(
      context,
      (p) => sql`select ${dialect.columns('logs', 'l')}, ${order} as place from ${tables.logs} as l
        where l.run_id = ${p('runId')} and ${order} > ${place(p)}
        and exists (select 1 from ${tables.runs} as r where r.id = ${p('runId')} and ${inTenant(p)})
        order by ${order} limit ${p('limit')}`,
    )
  const placeOf = (id: Sql) => sql`(select ${dialect.writeOrder('a')} from ${tables.logs} as a where a.id = ${id})`
  const afterPlace = behind<'place'>((p) => p('place'))
  const afterLog = behind<'afterId'>((p) => placeOf(p('afterId')))
  const afterLogIfThere = behind<'afterId'>((p) => sql`coalesce(${placeOf(p('afterId'))}, 0)`)
  type Page = Readonly<Record<PageName, SqlValue>>

  async function readAll(
    reader: Reader,
    runId: string,
    part: Part & { first(page: Page): CompiledQuery },
  ): Promise<readonly LogRecord[]> {
    const { tenant = null, limit: most = Number.POSITIVE_INFINITY } = part
    const turned = inTurns(reader)
    const rows = await readPages(context, most, (last, limit) => {
      const page = { runId, tenant, limit }
      return turned.read(
        last === undefined ? part.first(page) : afterPlace.bind({ ...page, place: Number(last['place']) }),
      )
    })
    return rows.map(toLog)
  }

  return {
    fromBeginning: (reader: Reader, runId: string, part: Part) =>
      readAll(reader, runId, { ...part, first: (page) => afterPlace.bind({ ...page, place: 0 }) }),
    /** Nothing where that one is not there. */
    after: (reader: Reader, runId: string, { after: afterId, ...part }: Part & { readonly after: string }) =>
      readAll(reader, runId, { ...part, first: (page) => afterLog.bind({ ...page, afterId }) }),
    /** From the beginning where that one is not there. */
    afterIfThere: (reader: Reader, runId: string, { after: afterId, ...part }: Part & { readonly after: string }) =>
      readAll(reader, runId, { ...part, first: (page) => afterLogIfThere.bind({ ...page, afterId }) }),
  }
}

export function createLogs(context: SqlContext, reader: Reader): LogStorage {
  const { tables, dialect } = context
  const pages = createLogPages(context)
  const byId = statement<'ids'>(
    context,
    (p) => sql`select ${dialect.columns('logs', 'l')} from ${tables.logs} as l
      where l.id in (select value from ${dialect.listOf(p('ids'))})`,
  )

  return {
    async findLogs(places) {
      const turned = inTurns(reader)
      const found: LogRecord[] = []
      for (let first = 0; first < places.length; first += context.stretch) {
        const ids = places.slice(first, first + context.stretch).map(({ id }) => id)
        found.push(...(await turned.read(byId.bind({ ids: JSON.stringify(ids) }))).map(toLog))
      }
      return found
    },
    getLogs: (runId, { after, ...part }) =>
      after === undefined ? pages.fromBeginning(reader, runId, part) : pages.after(reader, runId, { ...part, after }),
  }
}
