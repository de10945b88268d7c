import type { KnownJobBeat, KnownJobRecord, Lead, WorkerBeat, WorkerRecord } from '@coji/durably-core/storage'
import { SUSPECT_FROM } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from '../read'
import type { JobsTable, WorkersTable } from '../dialect'
import { createLeadLock, isLeading, type LeadName, leadValues } from './leads'
import {
  list,
  namesOf,
  type Row,
  rowsOf,
  type Sql,
  type SqlContext,
  statement,
  valueOf,
  type WriteTarget,
} from '../statement'

/** Workers that tell of themselves, and the jobs that they know. */
export function createWorkers(context: SqlContext) {
  const { dialect, tables, fences } = context
  const beat = beatStatement(context)
  const note = noteStatement(context)
  const all = statement<never>(context, () => workersQuery(context))
  const jobs = statement<never>(
    context,
    () => sql`select ${dialect.columns('jobs')} from ${tables.jobs} order by name, version, code_version`,
  )
  const lock = createLeadLock(context)
  const forget = statement<'silentForMs' | LeadName>(
    context,
    (p) => sql`delete from ${tables.workers} where last_beat_at <= ${dialect.nowPlus(sql`(- ${p('silentForMs')})`)}
      and not ${isAlive(context)} and not exists (${heldBy(context, 'running', sql`1`)})
      and not exists (${heldBy(context, 'assigned', sql`1`)}) and ${fences['forget.lead'](isLeading(context, p))}
      returning worker_id`,
  )
  const forgetJobs = statement<'silentForMs' | LeadName>(
    context,
    (p) => sql`delete from ${tables.jobs} as j where j.last_seen_at <= ${dialect.nowPlus(sql`(- ${p('silentForMs')})`)}
      and not exists (select 1 from ${tables.workers} as w where coalesce(w.code_version, '') = j.code_version)
      and ${fences['forget.leadOfJobs'](isLeading(context, p))}`,
  )
  return {
    async beat(target: WriteTarget, { placedJobs, labels, ...worker }: WorkerBeat): Promise<void> {
      const json = { placedJobs: JSON.stringify(placedJobs), labels: JSON.stringify(labels) }
      await target.write([beat.bind({ ...worker, ...json })])
    },
    async noteJobs(target: WriteTarget, codeVersion: string, known: readonly KnownJobBeat[]): Promise<void> {
      if (known.length === 0) return
      const rows = known.map(({ name, version: jobVersion, options }, n) => ({ n, name, jobVersion, options }))
      await target.write([note.bind({ codeVersion, jobs: JSON.stringify(rows) })])
    },
    list: async (reader: Reader): Promise<readonly WorkerRecord[]> => (await reader.read(all.bind({}))).map(toWorker),
    jobs: async (reader: Reader): Promise<readonly KnownJobRecord[]> => (await reader.read(jobs.bind({}))).map(toJob),
    async forget(target: WriteTarget, lead: Lead, silentForMs: number): Promise<number> {
      const values = { ...leadValues(lead), silentForMs }
      const results = await target.write([...lock(lead), forget.bind(values), forgetJobs.bind(values)])
      return results.at(-2)?.length ?? 0
    },
  }
}

function beatStatement(context: SqlContext) {
  const { dialect, tables } = context
  type Name = 'workerId' | 'presence' | 'capacity' | 'placedJobs' | 'labels' | 'codeVersion' | 'ttlMs'
  return statement<Name>(context, (p) => {
    const columns = {
      worker_id: p('workerId'),
      presence: p('presence'),
      capacity: p('capacity'),
      placed_jobs: dialect.toJson(p('placedJobs')),
      labels: dialect.toJson(p('labels')),
      code_version: p('codeVersion'),
      first_beat_at: dialect.now,
      last_beat_at: dialect.now,
      alive_until: dialect.nowPlus(p('ttlMs')),
    }
    const kept = Object.keys(columns).filter((name) => name !== 'worker_id' && name !== 'first_beat_at')
    const overwritten = kept.map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`)
    return sql`insert into ${tables.workers} (${namesOf(columns)}) values (${list(...Object.values(columns))})
      on conflict (worker_id) do update set ${list(...overwritten)}`
  })
}

function noteStatement(context: SqlContext) {
  const { dialect, tables } = context
  return statement<'codeVersion' | 'jobs'>(context, (p) => {
    const value = valueOf(context, 't')
    return sql`insert into ${tables.jobs} (name, version, code_version, options, last_seen_at)
      select ${value('name')}, ${value('jobVersion')}, ${p('codeVersion')}, ${dialect.toJson(value('options'))}, ${dialect.now}
      from ${rowsOf(context, p('jobs'), ['name', 'jobVersion', 'options'])} where true
      on conflict (name, version, code_version) do update set options = excluded.options, last_seen_at = excluded.last_seen_at`
  })
}

function workersQuery(context: SqlContext): Sql {
  const { dialect, tables } = context
  const isSuspect = sql`1 as held where (${heldBy(context, 'running', sql`max(r.crash_count)`)}) >= ${sql.lit(SUSPECT_FROM)}
    or (${heldBy(context, 'assigned', sql`max(r.crash_count)`)}) >= ${sql.lit(SUSPECT_FROM)}`
  return sql`select ${dialect.columns('workers', 'w')}, case when ${isAlive(context)} then 1 else 0 end as is_alive,
      (${heldBy(context, 'running', sql`count(*)`)}) as running, (${heldBy(context, 'assigned', sql`count(*)`)}) as assigned,
      case when exists (select ${isSuspect}) then 1 else 0 end as holds_suspect
    from ${tables.workers} as w order by w.worker_id`
}

function isAlive({ dialect }: SqlContext): Sql {
  return sql`(presence <> 'detached' and alive_until > ${dialect.now})`
}

/** Of the worker whose row it is about. */
function heldBy({ tables, dialect, prefix }: SqlContext, status: 'running' | 'assigned', what: Sql): Sql {
  const by = status === 'running' ? sql`r.owner_id` : sql`r.assigned_worker_id`
  return sql`select ${what} from ${tables.runs} as r ${dialect.useIndex(`${prefix}runs_${status}`)}
    where ${status === 'running' ? sql`r.status` : dialect.waitingStatus(sql`r.status`)} = ${sql.lit(status)} and ${by} = worker_id`
}

function toWorker(raw: Row): WorkerRecord {
  const row = raw as unknown as WorkersTable
  return {
    workerId: row.worker_id,
    presence: row.presence,
    capacity: row.capacity,
    placedJobs: JSON.parse(row.placed_jobs) as string[],
    labels: JSON.parse(row.labels) as Record<string, string>,
    codeVersion: row.code_version,
    firstBeatAt: row.first_beat_at,
    lastBeatAt: row.last_beat_at,
    isAlive: raw['is_alive'] === 1,
    assigned: Number(raw['assigned']),
    running: Number(raw['running']),
    holdsSuspect: raw['holds_suspect'] === 1,
  }
}

function toJob(raw: Row): KnownJobRecord {
  const { name, version, code_version: codeVersion, options, last_seen_at: lastSeenAt } = raw as unknown as JobsTable
  return { name, version, codeVersion, options, lastSeenAt }
}
