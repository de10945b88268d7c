import {
  type AssignedParams,
  type AssignedRun,
  type AssignedToWorker,
  type PlacementStorage,
  type RunRecord,
  SUSPECT_FROM,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Reader } from '../read'
import { bindEvents, createWriteLocked, eventStatement, startOfExecution } from '../write'
import { wasLed } from './leads'
import {
  and,
  type Row,
  rowsOf,
  runColumns,
  runsBy,
  type Sql,
  type SqlContext,
  statement,
  toRun,
  type WriteTarget,
} from '../statement'

type SeenName = 'workerId' | 'runs'
type Parameter = (name: SeenName) => Sql
type StartParams = Parameters<PlacementStorage['start']>[0]

/** What a worker does with the runs that a leader has assigned to it. */
export function createAssigned(context: SqlContext) {
  const { tables, dialect } = context
  const writeLocked = createWriteLocked(context)
  const look = lookStatement(context)
  const starting = (p: Parameter) => guardOf('start', p)
  const declining = (p: Parameter) => guardOf('decline', p)
  const startEvent = eventStatement<SeenName>(context, starting)
  const declineEvent = eventStatement<SeenName>(context, declining)
  const start = statement<SeenName | 'claimToken' | 'leaseMs' | 'eventCount'>(context, (p) => {
    const sets = startOfExecution(context, p, { slot: sql`null`, leaderEpoch: sql`r.leader_epoch` })
    return sql`update ${tables.runs} as r set ${sets} ${among('start', p)} returning ${runColumns(context, dialect.updatedRun)}`
  })
  const decline = statement<SeenName | 'eventCount'>(
    context,
    (p) =>
      sql`update ${tables.runs} as r set ${orphaned(context, p('eventCount'))} ${among('decline', p)} returning id`,
  )
  const valuesOf = ({ workerId, runs }: AssignedParams) => {
    return { workerId, runs: JSON.stringify(runs.map(({ runId, version }, n) => ({ n, runId, version }))) }
  }
  const idsOf = ({ runs }: AssignedParams) => ({ runIds: runs.map(({ runId }) => runId) })

  return {
    async list(reader: Reader, workerId: string, limit: number): Promise<AssignedToWorker> {
      const rows = await reader.read(look.bind({ workerId, limit }))
      return { runs: rows.filter((row) => row['id'] !== null).map(toAssigned), isLed: rows[0]?.['is_led'] === 1 }
    },
    async start(target: WriteTarget, params: StartParams): Promise<readonly RunRecord[]> {
      const { events, claimToken, leaseMs } = params
      const values = valuesOf(params)
      const results = await writeLocked(target, idsOf(params), [
        ...bindEvents({ statement: startEvent, events, after: 0, values }),
        start.bind({ ...values, claimToken, leaseMs, eventCount: events.length }),
      ])
      const started = new Map((results.at(-1) ?? []).map((row) => [row['id'], toRun(row)]))
      return params.runs.flatMap(({ runId }) => started.get(runId) ?? [])
    },
    async decline(target: WriteTarget, params: AssignedParams): Promise<readonly boolean[]> {
      const { events } = params
      const values = valuesOf(params)
      const results = await writeLocked(target, idsOf(params), [
        ...bindEvents({ statement: declineEvent, events, after: 0, values }),
        decline.bind({ ...values, eventCount: events.length }),
      ])
      const declined = new Set((results.at(-1) ?? []).map(({ id }) => id))
      return params.runs.map(({ runId }) => declined.has(runId))
    },
  }

  /** Each is looked up once. */
  function among(transition: 'start' | 'decline', p: Parameter): Sql {
    const { fences } = context
    const guard = and(
      sql`r.id = t."runId"`,
      fences[`${transition}.status`](),
      fences[`${transition}.assignee`](p('workerId')),
      fences[`${transition}.version`](sql`t.version`),
    )
    return sql`from ${rowsOf(context, p('runs'), ['runId', 'version'])} where ${guard}`
  }

  function guardOf(transition: 'start' | 'decline', p: Parameter): Sql {
    const { fences } = context
    const seen = rowsOf(context, p('runs'), ['runId', 'version'])
    return and(
      sql`r.id in (select t."runId" from ${seen})`,
      fences[`${transition}.status`](),
      fences[`${transition}.assignee`](p('workerId')),
      fences[`${transition}.version`](sql`(select t.version from ${seen} where t."runId" = r.id)`),
    )
  }
}

function lookStatement(context: SqlContext) {
  const { dialect } = context
  return statement<'workerId' | 'limit'>(context, (p) => {
    const isLed = sql`case when ${wasLed(context)} then 1 else 0 end as is_led`
    return sql`select one.is_led, r.id, r.version, r.job_name, r.crash_count from (select ${isLed}) as one
      left join (select r.id, r.version, r.job_name, r.crash_count, r.priority, r.available_at
        from ${runsBy(context, 'assigned')} where ${dialect.waitingStatus(sql`r.status`)} = 'assigned' and r.assigned_worker_id = ${p('workerId')}
        order by r.priority desc, r.available_at, r.id limit ${p('limit')}) as r on 1 = 1
      order by r.priority desc, r.available_at, r.id`
  })
}

/** What becomes of a run `r` that its worker does not start. */
export function orphaned({ dialect }: SqlContext, eventCount: Sql): Sql {
  return sql`status = 'orphaned', version = r.version + 1, updated_at = ${dialect.now},
    concurrency_slot = case when r.hold_key_while_waiting = 1 and r.started_at is not null then r.concurrency_slot end,
    last_event_sequence = r.last_event_sequence + ${eventCount}`
}

function toAssigned(row: Row): AssignedRun {
  return {
    runId: String(row['id']),
    version: Number(row['version']),
    jobName: String(row['job_name']),
    isSuspect: Number(row['crash_count']) >= SUSPECT_FROM,
  }
}
