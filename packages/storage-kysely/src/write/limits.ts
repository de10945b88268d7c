import { type AuditNote, type JobLimits, type JobLoad, MOST_STARTS } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { msUntil, type Reader } from '../read'
import { insertNote, type Noted, type NoteName, withNote } from './audit'
import { and, runsBy, type Sql, type SqlContext, type SqlValue, statement, type WriteTarget } from '../statement'

export type LimitName = 'jobName' | 'concurrency' | 'maxStarts' | 'perMs'
type Parameter = (name: LimitName) => Sql

export function limitValues({ jobName, concurrency, rateLimit }: JobLimits): Record<LimitName, SqlValue> {
  return { jobName, concurrency, maxStarts: rateLimit?.max ?? null, perMs: rateLimit?.per ?? null }
}

export const NO_LIMITS: JobLimits = { jobName: '', concurrency: null, rateLimit: null }

/** Whether the job may begin so many runs more. */
export function hasRoomFor(context: SqlContext, p: Parameter, more: Sql): Sql {
  const { tables, dialect, fences } = context
  // Starts are numbered in their order, so that one of them tells whether all after it are too many.
  const isUsedUp = sql`exists (select 1 from ${tables.job_starts} as s where s.job_name = ${p('jobName')}
    and s.nth = ${lastStart(context, p)} - ${p('maxStarts')} + ${more} and s.started_at > ${dialect.nowPlus(sql`(- ${p('perMs')})`)})`
  return and(
    fences['claim.concurrency'](sql`${running(context, p)} + ${more}`, p('concurrency')),
    fences['claim.rate'](sql`(${more} <= ${p('maxStarts')} and not ${isUsedUp})`, p('maxStarts')),
  )
}

export function lastStart({ tables }: SqlContext, p: Parameter): Sql {
  return sql`coalesce((select max(l.nth) from ${tables.job_starts} as l where l.job_name = ${p('jobName')}), 0)`
}

/** Beyond what any rate looks back upon. */
export function forgottenStarts({ tables }: SqlContext, p: Parameter, last: Sql): Sql {
  return sql`delete from ${tables.job_starts} where job_name = ${p('jobName')} and nth <= ${last} - ${sql.lit(MOST_STARTS)}`
}

function running(context: SqlContext, p: Parameter): Sql {
  return sql`(select count(*) from ${runsBy(context, 'running')} where r.status = 'running' and r.job_name = ${p('jobName')})`
}

export type Limits = ReturnType<typeof createLimits>

export function createLimits(context: SqlContext) {
  const { tables, dialect } = context
  const load = statement<LimitName>(context, (p) => {
    const blocking = sql`(select s.started_at from ${tables.job_starts} as s where s.job_name = ${p('jobName')}
      and s.nth = ${lastStart(context, p)} - ${p('maxStarts')} + 1)`
    return sql`select ${running(context, p)} as running, ${dialect.read(dialect.now, 'instant')} as now,
      ${dialect.read(dialect.plus(blocking, p('perMs')), 'instant')} as opens_at`
  })
  const pause = statement<'jobName'>(
    context,
    (p) => sql`insert into ${tables.paused_jobs} (job_name, paused_at) values (${p('jobName')}, ${dialect.now})
      on conflict do nothing`,
  )
  const resume = statement<'jobName'>(
    context,
    (p) => sql`delete from ${tables.paused_jobs} where job_name = ${p('jobName')}`,
  )
  const paused = statement<never>(context, () => sql`select job_name from ${tables.paused_jobs} order by job_name`)
  const noted = notedPause(context)
  const write = (
    target: WriteTarget,
    jobName: string,
    { query, audit }: { readonly query: CompiledQuery; readonly audit: AuditNote | undefined },
  ) => target.write(withNote(audit, noted, { values: { jobName }, list: [query] })).then(() => {})

  return {
    async load(reader: Reader, limits: JobLimits): Promise<JobLoad> {
      const [row = {}] = await reader.read(load.bind(limitValues(limits)))
      return { running: Number(row['running']), opensInMs: msUntil(row['opens_at'], row['now']) ?? 0 }
    },
    pause: (target: WriteTarget, jobName: string, audit?: AuditNote) =>
      write(target, jobName, { query: pause.bind({ jobName }), audit }),
    resume: (target: WriteTarget, jobName: string, audit?: AuditNote) =>
      write(target, jobName, { query: resume.bind({ jobName }), audit }),
    async paused(reader: Reader): Promise<readonly string[]> {
      return (await reader.read(paused.bind({}))).map((row) => String(row['job_name']))
    },
  }
}

function notedPause(context: SqlContext): Noted<'jobName'> {
  const { tables, dialect } = context
  const view = (p: (name: 'jobName') => Sql) => {
    const isPaused = sql`exists (select 1 from ${tables.paused_jobs} as j where j.job_name = ${p('jobName')})`
    return dialect.record({ paused: dialect.truth(isPaused) })
  }
  return {
    before: statement<'jobName' | NoteName>(context, (p) => {
      const of = { tenant: sql`''`, target_kind: sql`'job'`, target: p('jobName'), before: view(p) }
      return insertNote(context, p, { of, from: sql`` })
    }),
    after: statement<'jobName' | NoteName>(
      context,
      (p) => sql`update ${tables.audit} set after = ${view(p)} where id = ${p('noteId')}`,
    ),
  }
}
