import type { LogRecord, LogStorage } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from './reader'
import { inTenant } from './reads'
import { readPages } from './pages'
import { inTurns } from './turns'
import { type Sql, type SqlContext, statement, toLog } from '../statement'

export function createLogs(context: SqlContext, reader: Reader): LogStorage {
  const { tables, dialect } = context
  const order = dialect.writeOrder('l')
  const behind = <TName extends 'afterId' | 'place'>(place: (p: (name: TName) => Sql) => Sql) =>
    statement<'runId' | 'tenant' | 'limit' | TName>(
      context,
      (p) => sql`select ${dialect.columns('logs', 'l')}, ${order} as place from ${tables.logs} as l
        where l.run_id = ${p('runId')} and ${order} > ${place(p)}
        and exists (select 1 from ${tables.runs} as r where r.id = ${p('runId')} and ${inTenant(p)})
        order by ${order} limit ${p('limit')}`,
    )
  const afterPlace = behind<'place'>((p) => p('place'))
  const afterLog = behind<'afterId'>(
    (p) => sql`(select ${dialect.writeOrder('a')} from ${tables.logs} as a where a.id = ${p('afterId')})`,
  )

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
    async getLogs(runId, options) {
      const { tenant = null, after: afterId, limit: most = Number.POSITIVE_INFINITY } = options
      const turned = inTurns(reader)
      const rows = await readPages(context, most, (last, limit) => {
        const page = { runId, tenant, limit }
        if (last === undefined && afterId !== undefined) return turned.read(afterLog.bind({ ...page, afterId }))
        return turned.read(afterPlace.bind({ ...page, place: Number(last?.['place'] ?? 0) }))
      })
      return rows.map(toLog)
    },
  }
}
