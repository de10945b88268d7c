import type { NewFork, RunRecord } from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { insertNote, type NoteName, noteValues, runView } from './audit'
import { bindNewRun, newRunStatements } from './new-run'
import { runColumns, type SqlContext, statement, type StatementTarget, toRun } from '../statement'

export type Fork = (target: StatementTarget, fork: NewFork) => Promise<RunRecord | null>

/** What a copy has of its step; the rest is its own. */
const COPIED = [
  'name',
  'index',
  'kind',
  'status',
  'attempt',
  'output',
  'wait_name',
  'due_at',
  'started_at',
  'completed_at',
]

export function createFork(context: SqlContext): Fork {
  const { tables, dialect } = context
  const create = newRunStatements<'originId'>(context, { guard: (p) => sql`r.id = ${p('originId')}` })
  const columns = sql.join(COPIED.map((name) => sql.ref(name)))
  const values = sql.join(COPIED.map((name) => sql.ref(`s.${name}`)))
  const copy = statement<'runId' | 'originId' | 'steps'>(context, (p) => {
    const [id, copyId] = [dialect.field(sql`c.value`, 0, 'text'), dialect.field(sql`c.value`, 1, 'text')]
    return sql`insert into ${tables.steps} (id, run_id, lease_epoch, claim_token, ${columns})
      select ${copyId}, n.id, 0, '', ${values} from ${dialect.rowsOf(p('steps'))} as c
      join ${tables.steps} as s on s.id = ${id} and s.run_id = ${p('originId')} and s.status = 'completed'
      join ${tables.runs} as n on n.id = ${p('runId')}
      where true order by s."index", ${dialect.writeOrder('s')} on conflict do nothing`
  })
  const link = statement<'runId' | 'originId' | 'place'>(
    context,
    (p) => sql`update ${tables.runs} set forked_from = ${p('originId')}, current_step_index = ${p('place')}
      where id = ${p('runId')} and forked_from is null`,
  )
  const note = statement<'runId' | 'originId' | NoteName>(context, (p) => {
    const of = { tenant: sql`r.tenant`, target_kind: sql`'run'`, target: sql`r.id`, before: runView(context) }
    const after = dialect.record({ run: p('runId') })
    return insertNote(context, p, {
      of: { ...of, after },
      from: sql`from ${tables.runs} as r where r.id = ${p('originId')}`,
    })
  })
  const look = statement<'runId'>(
    context,
    (p) => sql`select ${runColumns(context, 'r')} from ${tables.runs} as r where r.id = ${p('runId')}`,
  )

  return async function fork(target, { run, originId, steps, audit }) {
    const runId = run.id
    const pairs = JSON.stringify(steps.map(({ id, copyId }) => [id, copyId]))
    const results = await target.write([
      ...bindNewRun(create, run, { extra: { originId }, firstId: null }),
      copy.bind({ runId, originId, steps: pairs }),
      link.bind({ runId, originId, place: steps.length }),
      ...(audit === undefined ? [] : [note.bind({ ...noteValues(audit), runId, originId })]),
      look.bind({ runId }),
    ])
    const [row] = results.at(-1) ?? []
    return row === undefined ? null : toRun(row)
  }
}
