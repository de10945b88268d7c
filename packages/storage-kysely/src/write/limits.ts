import { type JobLimits, type JobLoad, MOST_STARTS } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import { msUntil, type Reader } from '../read'
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
  const write = (target: WriteTarget, query: CompiledQuery) => target.write([query]).then(() => {})

  return {
    async load(reader: Reader, limits: JobLimits): Promise<JobLoad> {
      const [row = {}] = await reader.read(load.bind(limitValues(limits)))
      return { running: Number(row['running']), opensInMs: msUntil(row['opens_at'], row['now']) ?? 0 }
    },
    pause: (target: WriteTarget, jobName: string) => write(target, pause.bind({ jobName })),
    resume: (target: WriteTarget, jobName: string) => write(target, resume.bind({ jobName })),
    async paused(reader: Reader): Promise<readonly string[]> {
      return (await reader.read(paused.bind({}))).map((row) => String(row['job_name']))
    },
  }
}
