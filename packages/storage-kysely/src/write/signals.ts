import type { NewSignal, SignalAnswer, SignalStorage } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import type { Executor } from '../connection'
import type { Reads } from '../read'
import { and, assignments, type Sql, type SqlContext, statement, toSignal, wokenBySignal } from '../statement'
import { insertNote, type Noted, type NoteName, runView, withNote } from './audit'
import { createWriteLocked } from './row-locks'
import { bindEvents, eventStatement } from './run-events'

type TargetName = 'runId' | 'tenant'
type Parameter<TName extends string> = (name: TName) => Sql

/** A signal is inserted at the next position, which the last statement of the list makes the current one. */
export function createSignals(context: SqlContext, executor: Executor, reads: Reads): SignalStorage {
  const { tables, dialect, fences } = context
  const writeLocked = createWriteLocked(context)
  const guard = (p: Parameter<TargetName>) =>
    and(sql`r.id = ${p('runId')}`, fences['signal.tenant'](p('tenant')), fences['signal.status']())
  const isNew = sql`exists (select 1 from ${tables.signals} as g where g.run_id = r.id and g.position = r.wakes + 1)`
  const arrived = (p: Parameter<TargetName>) => and(sql`r.id = ${p('runId')}`, isNew)
  const insert = statement<TargetName | 'name' | 'payload' | 'dedupeKey'>(
    context,
    (p) => sql`insert into ${tables.signals} (run_id, position, name, payload, dedupe_key, created_at)
      select r.id, r.wakes + 1, ${p('name')}, ${p('payload')}, ${p('dedupeKey')}, ${dialect.now}
      from ${tables.runs} as r where ${guard(p)} on conflict do nothing`,
  )
  const event = eventStatement<TargetName>(context, arrived)
  const count = statement<TargetName | 'eventCount'>(
    context,
    (p) => sql`update ${tables.runs} as r set ${assignments(wokenBySignal(context, 'r'))},
      last_event_sequence = r.last_event_sequence + ${p('eventCount')} where ${arrived(p)} returning wakes`,
  )
  const noted: Noted<TargetName | 'name'> = {
    before: statement<TargetName | 'name' | NoteName>(context, (p) => {
      const of = { tenant: sql`r.tenant`, target_kind: sql`'run'`, target: sql`r.id`, before: runView(context) }
      return insertNote(context, p, { of, from: sql`from ${tables.runs} as r where ${arrived(p)}` })
    }),
    after: statement<TargetName | 'name' | NoteName>(
      context,
      (p) => sql`update ${tables.audit} set after = ${dialect.record({ signal: p('name') })} where id = ${p('noteId')}`,
    ),
  }
  const unread = statement<'runId'>(
    context,
    (
      p,
    ) => sql`select ${dialect.columns('signals', 'g')} from ${tables.signals} as g where g.run_id = ${p('runId')} and g.consumed_at is null
      order by g.position`,
  )
  const known = statement<'runId' | 'dedupeKey'>(
    context,
    (p) => sql`select g.position from ${tables.signals} as g
      where g.run_id = ${p('runId')} and g.dedupe_key = ${p('dedupeKey')}`,
  )

  async function isKnown({ runId, dedupeKey }: NewSignal): Promise<boolean> {
    return dedupeKey !== null && (await executor.read(known.bind({ runId, dedupeKey }))).length > 0
  }

  async function whyNot(signal: NewSignal): Promise<SignalAnswer> {
    const run = await reads.getRun(executor, signal.runId, signal.tenant === undefined ? {} : { tenant: signal.tenant })
    if (run === null) return { kept: false, reason: 'not-found' }
    // Who repeats a signal because the answer was lost need not know that the run has ended meanwhile.
    if (run.finishedAt !== null && !(await isKnown(signal))) return { kept: false, reason: 'wrong-state', run }
    return { kept: false, reason: 'duplicate' }
  }

  return {
    async send(signal) {
      const { name, payload, dedupeKey, events, audit } = signal
      const target = { runId: signal.runId, tenant: signal.tenant ?? null }
      const results = await writeLocked(executor.callers, { runIds: [signal.runId] }, [
        insert.bind({ ...target, name, payload, dedupeKey }),
        // Once it is counted nobody can tell which signal is new.
        ...withNote(audit, noted, { values: { ...target, name }, list: [] }),
        ...bindEvents({ statement: event, events, after: 0, values: target }),
        count.bind({ ...target, eventCount: events.length }),
      ])
      const [row] = results.at(-1) ?? []
      return row === undefined ? whyNot(signal) : { kept: true, position: row['wakes'] as number }
    },
    async getUnread(runId) {
      return (await executor.read(unread.bind({ runId }))).map(toSignal)
    },
  }
}
