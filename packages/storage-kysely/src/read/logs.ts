import type { LogRecord, LogStorage } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from './reader'
import { inTenant } from './reads'
import { inTurns } from './turns'
import { type SqlContext, statement, toLog } from '../statement'

const NO_LIMIT = 2 ** 31

export function createLogs(context: SqlContext, reader: Reader): LogStorage {
  const { tables, dialect } = context
  const ofRun = statement<'runId' | 'tenant' | 'afterId' | 'limit'>(
    context,
    (p) => sql`select ${dialect.columns('logs', 'l')} from ${tables.logs} as l where l.run_id = ${p('runId')}
      and exists (select 1 from ${tables.runs} as r where r.id = ${p('runId')} and ${inTenant(p)})
      and (${p('afterId')} is null or ${dialect.writeOrder('l')} > (
        select ${dialect.writeOrder('a')} from ${tables.logs} as a where a.id = ${p('afterId')}))
      order by ${dialect.writeOrder('l')} limit ${p('limit')}`,
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
      const { tenant = null, after: afterId = null, limit = NO_LIMIT } = options
      return (await reader.read(ofRun.bind({ runId, tenant, afterId, limit }))).map(toLog)
    },
  }
}
