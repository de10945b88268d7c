import {
  type ConflictError,
  type EnqueueAnswer,
  keyConflict,
  type NewRun,
  type RunRecord,
  StorageError,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { isConstraintError } from '../connection'
import { createGroupEnqueue } from './group-enqueue'
import { createListEnqueue, type Inserted } from './list-enqueue'
import { createRefusingEnqueue } from './refusing-enqueue'
import { runColumns, type SqlContext, statement, type StatementTarget, toRun } from '../statement'

export type FindConflict = (target: StatementTarget, runs: readonly NewRun[]) => Promise<ConflictError | null>

export interface Enqueuer {
  enqueue(target: StatementTarget, runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]>
  /** As `enqueue`, within this very call where that is possible. */
  enqueueAtOnce(
    target: StatementTarget,
    runs: readonly NewRun[],
  ): readonly EnqueueAnswer[] | Promise<readonly EnqueueAnswer[]>
  /** Which idempotency key made the database refuse these runs. */
  readonly findConflict: FindConflict
}

/** A run that has the key can be deleted between the refused insert and the look at it. */
const MAX_ROUNDS = 20

export function createEnqueue(context: SqlContext): Enqueuer {
  const findHolder = holderStatement(context)
  const listEnqueue = createListEnqueue(context)
  const groupEnqueue = createGroupEnqueue(context)
  const enqueueOrRefuse = createRefusingEnqueue(context)
  const { hasWritingQueries } = context.dialect

  function insert(target: StatementTarget, runs: readonly NewRun[]): Promise<Inserted> {
    return hasWritingQueries ? groupEnqueue(target, runs) : listEnqueue.send(target, runs)
  }

  /** Of keys that refuse, or are taken, the other way knows what to say. */
  function enqueueNow(target: StatementTarget, runs: readonly NewRun[]): readonly EnqueueAnswer[] | null {
    if (hasWritingQueries || runs.some(mayRefuse)) return null
    const inserted = listEnqueue.sendNow(target, runs)
    if (inserted === null) return null
    const answers: EnqueueAnswer[] = []
    for (const run of inserted) {
      if (run === null) return null
      answers.push({ run, created: true })
    }
    return answers
  }

  async function holderOf(target: StatementTarget, run: NewRun): Promise<RunRecord | null> {
    const { id, tenant, jobName, idempotencyKey, scheduleId, scheduledFor } = run
    const rows = await target.read(findHolder.bind({ id, tenant, jobName, idempotencyKey, scheduleId, scheduledFor }))
    const own = rows.find((row) => row['id'] === id) ?? rows[0]
    return own === undefined ? null : toRun(own)
  }

  async function findConflict(target: StatementTarget, runs: readonly NewRun[]): Promise<ConflictError | null> {
    for (const [index, run] of runs.entries()) {
      if (run.onConflict !== 'reject' || run.idempotencyKey === null) continue
      const holder = await holderOf(target, run)
      const other = holder ?? runs.slice(0, index).find((earlier) => hasSameKey(earlier, run))
      if (other === undefined || other.id === run.id || other.payload === run.payload) continue
      return keyConflict(run, other)
    }
    return null
  }

  async function enqueueRefusing(target: StatementTarget, runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]> {
    const inOrder = runs.slice().sort(byKey)
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const found = await enqueueOrRefuse(target, inOrder)
      if (found instanceof Error) throw found
      if (found === null) continue
      const answers = new Map(inOrder.map((run, index) => [run, found[index]]))
      return runs.map((run) => present(answers.get(run)))
    }
    throw comingAndGoing()
  }

  async function enqueue(target: StatementTarget, runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]> {
    const hasRefusing = runs.some(mayRefuse)
    if (hasRefusing && hasWritingQueries) return enqueueRefusing(target, runs)
    const answers = new Map<NewRun, EnqueueAnswer>()
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const open = runs.filter((run) => !answers.has(run)).sort(byKey)
      const created = await insert(target, open).catch(async (error: unknown) => {
        const isRefused = hasRefusing && isConstraintError(error)
        const conflict = isRefused ? await findConflict(target, runs) : null
        // Without one, what had the key is gone: the next round finds it free.
        if (conflict !== null || !isRefused || round === MAX_ROUNDS - 1) throw conflict ?? error
        return null
      })
      if (created === null) continue
      for (const [index, run] of open.entries()) {
        const record = created[index] ?? (await holderOf(target, run))
        if (record !== null) answers.set(run, { run: record, created: record.id === run.id })
      }
      if (answers.size === runs.length) return runs.map((run) => present(answers.get(run)))
    }
    throw comingAndGoing()
  }

  return { enqueue, enqueueAtOnce: (target, runs) => enqueueNow(target, runs) ?? enqueue(target, runs), findConflict }
}

function mayRefuse({ onConflict, idempotencyKey }: NewRun): boolean {
  return onConflict === 'reject' && idempotencyKey !== null
}

function comingAndGoing(): StorageError {
  return new StorageError('STORAGE_BUSY', 'Runs with these idempotency keys keep coming and going.')
}

function holderStatement(context: SqlContext) {
  const { tables } = context
  type Name = 'id' | 'tenant' | 'jobName' | 'idempotencyKey' | 'scheduleId' | 'scheduledFor'
  return statement<Name>(context, (p) => {
    const from = sql`select ${runColumns(context)} from ${tables.runs} as r where`
    return sql`${from} r.id = ${p('id')} union ${from} r.tenant = ${p('tenant')} and r.job_name = ${p('jobName')}
      and r.idempotency_key = ${p('idempotencyKey')} union ${from} r.schedule_id = ${p('scheduleId')}
      and r.scheduled_for = ${p('scheduledFor')}`
  })
}

/** Two lists that want the same keys take them in the same order, so that neither waits for the other. */
export function byKey(a: NewRun, b: NewRun): number {
  const [one, other] = [a, b].map((run) => JSON.stringify([run.idempotencyKey, run.tenant, run.jobName]))
  return one === other ? 0 : (one ?? '') < (other ?? '') ? -1 : 1
}

function hasSameKey(a: NewRun, b: NewRun): boolean {
  return a.tenant === b.tenant && a.jobName === b.jobName && a.idempotencyKey === b.idempotencyKey
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new StorageError('STORAGE_UNAVAILABLE', 'The database did not answer every statement.')
  return value
}
