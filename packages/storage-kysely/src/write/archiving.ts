import type { ArchivingStorage, LoggedRuns } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { createLogPages, type Reader } from '../read'
import { createWriteLocked } from './row-locks'
import { and, compileQuery, runsBy, type Sql, type SqlContext, statement, type WriteTarget } from '../statement'

export type Archiving = ReturnType<typeof createArchiving>

type FindParams = Parameters<ArchivingStorage['findLogged']>[0]
type ReferParams = Parameters<ArchivingStorage['refer']>[0]
type UnarchivedOptions = Parameters<ArchivingStorage['getUnarchived']>[1]
type RemoveParams = Parameters<ArchivingStorage['removeArchived']>[0]
type GiveUpParams = Parameters<ArchivingStorage['giveUp']>[0]

export function createArchiving(context: SqlContext) {
  const { tables, dialect } = context
  const writeLocked = createWriteLocked(context)
  const refer = referStatements(context)
  const logs = createLogPages(context)
  const remove = removeStatement(context)
  const isThere = statement<'runId' | 'name' | 'logId'>(
    context,
    (p) => sql`select 1 from ${tables.logs} as l where l.id = ${p('logId')} and ${isReferredTo(context, p)}`,
  )
  const announce = statement<'name'>(
    context,
    (p) => sql`insert into ${tables.archive_strays} (name, announced_at) values (${p('name')}, ${dialect.now})
      on conflict do nothing`,
  )
  const giveUp = statement<'olderThanMs'>(
    context,
    (p) => sql`update ${tables.archive_strays} set is_given_up = 1
      where is_given_up = 0 and announced_at <= ${dialect.nowPlus(sql`(- ${p('olderThanMs')})`)}`,
  )
  const givenUp = statement<'limit'>(
    context,
    (p) => sql`select name from ${tables.archive_strays} where is_given_up = 1 order by name limit ${p('limit')}`,
  )
  const forget = statement<'ids'>(
    context,
    (p) => sql`delete from ${tables.archive_strays} where name in (select value from ${dialect.listOf(p('ids'))})`,
  )

  return {
    async findLogged(reader: Reader, params: FindParams): Promise<LoggedRuns> {
      const rows = await reader.read(compileQuery(context, endedRuns(context, params)))
      const logged = rows.filter((row) => Boolean(row['has_logs']))
      const last = rows.at(-1)
      return {
        runs: logged.map((row) => ({ id: String(row['id']), version: Number(row['version']) })),
        last: last === undefined ? null : { finishedAt: String(last['finished_at']), id: String(last['id']) },
      }
    },
    async announce(target: WriteTarget, name: string): Promise<void> {
      await target.write([announce.bind({ name })])
    },
    async refer(target: WriteTarget, { runId, version, name }: ReferParams): Promise<boolean> {
      const results = await writeLocked(
        target,
        { runIds: [runId] },
        refer.map((one) => one.bind({ runId, version, name })),
      )
      return (results.at(-2)?.length ?? 0) > 0
    },
    getUnarchived(reader: Reader, runId: string, { last, ...part }: UnarchivedOptions) {
      return logs.afterIfThere(reader, runId, { ...part, after: last ?? '' })
    },
    async removeArchived(target: WriteTarget, { runId, name, last: logId, limit }: RemoveParams): Promise<boolean> {
      const archived = { runId, name, logId }
      const [, left = []] = await target.write([remove.bind({ ...archived, limit }), isThere.bind(archived)])
      return left.length === 0
    },
    async giveUp(target: WriteTarget, { announcedForMs, limit }: GiveUpParams): Promise<readonly string[]> {
      const [, rows = []] = await target.write([giveUp.bind({ olderThanMs: announcedForMs }), givenUp.bind({ limit })])
      return rows.map((row) => String(row['name']))
    },
    async forget(target: WriteTarget, names: readonly string[]): Promise<void> {
      if (names.length > 0) await target.write([forget.bind({ ids: JSON.stringify(names) })])
    },
  }
}

/** Looks at so many and no more, whether they have logs or not; of an `exists` Postgres would make one look at all logs. */
function endedRuns(context: SqlContext, { olderThanMs, after, limit }: FindParams): Sql {
  const { tables, dialect } = context
  const conditions = [
    sql`r.finished_at is not null`,
    sql`r.finished_at < ${dialect.nowPlus(sql`${-olderThanMs}`)}`,
    ...(after === null ? [] : [sql`(r.finished_at, r.id) > (${after.finishedAt}, ${after.id})`]),
  ]
  return sql`with page as materialized (
      select r.id, r.version, r.finished_at from ${runsBy(context, 'finished')}
      where ${and(...conditions)} order by r.finished_at, r.id limit ${limit})
    select r.id, r.version, ${dialect.read(sql`r.finished_at`, 'instant')} as finished_at,
      coalesce((select 1 from ${tables.logs} as l where l.run_id = r.id limit 1), 0) as has_logs
    from page as r order by r.finished_at, r.id`
}

/** The first one locks the name: whoever gives it up has done so before, or finds it taken off the list. */
function referStatements(context: SqlContext) {
  const { tables, fences } = context
  type Parameter = (name: 'runId' | 'version' | 'name') => Sql
  const isAnnounced = (p: Parameter) => fences['archive.announced'](tables.archive_strays, p('name'))
  const guard = (p: Parameter) =>
    and(
      sql`r.id = ${p('runId')}`,
      fences['archive.status'](),
      fences['archive.unchanged'](p('version')),
      isAnnounced(p),
    )
  const one = (build: (p: Parameter) => Sql) => statement<'runId' | 'version' | 'name'>(context, build)
  return [
    one((p) => sql`update ${tables.archive_strays} set announced_at = announced_at where name = ${p('name')}`),
    one((p) => straysOf(context, guard(p))),
    one(
      (p) => sql`update ${tables.runs} as r set log_ref = ${p('name')}, version = r.version + 1,
        updated_at = ${context.dialect.now} where ${guard(p)} returning id`,
    ),
    one(
      (p) => sql`delete from ${tables.archive_strays} where name = ${p('name')} and exists (
        select 1 from ${tables.runs} as r where r.id = ${p('runId')} and r.log_ref = ${p('name')})`,
    ),
  ]
}

/** The first ones go first, so that the last one is there for as long as any is. */
function removeStatement(context: SqlContext) {
  const { tables, dialect } = context
  const order = dialect.writeOrder('l')
  return statement<'runId' | 'name' | 'logId' | 'limit'>(context, (p) => {
    const last = sql`(select ${dialect.writeOrder('a')} from ${tables.logs} as a where a.id = ${p('logId')})`
    const first = sql`select l.id from ${tables.logs} as l where l.run_id = ${p('runId')} and ${order} <= ${last}
      order by ${order} limit ${p('limit')}`
    return sql`delete from ${tables.logs} where ${dialect.isAmong(sql`id`, first)} and ${isReferredTo(context, p)}`
  })
}

function isReferredTo({ tables, fences }: SqlContext, p: (name: 'runId' | 'name') => Sql): Sql {
  return sql`exists (select 1 from ${tables.runs} as r
    where r.id = ${p('runId')} and ${fences['archive.name'](p('name'))})`
}

/** What these runs refer to, they will not refer to any more. */
export function straysOf({ tables, dialect }: SqlContext, guard: Sql): Sql {
  return sql`insert into ${tables.archive_strays} (name, announced_at, is_given_up)
    select r.log_ref, ${dialect.now}, 1 from ${tables.runs} as r where r.log_ref is not null and ${guard}
    on conflict do nothing`
}
