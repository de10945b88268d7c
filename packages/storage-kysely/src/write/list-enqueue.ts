import type { NewRun, RunRecord } from '@coji/durably-core/storage'
import { type CompiledQuery, sql } from 'kysely'
import type { Rows } from '../dialect'
import { bindNewRun, freshRun, newRunStatements } from './new-run'
import { type SqlContext, statement, type WriteTarget } from '../statement'

/** For each run what was stored of it; `null` where its key is taken, or it is there from before and has changed since. */
export type Inserted = readonly (RunRecord | null)[]

export interface ListEnqueue {
  send(target: WriteTarget, runs: readonly NewRun[]): Promise<Inserted>
  /** Within this very call; `null` where that cannot be. */
  sendNow(target: WriteTarget, runs: readonly NewRun[]): Inserted | null
}

/**
 * On SQLite: one statement for one run. For more a statement for each row and one behind them that reads what the database
 * has added: a row that an insert returns costs three times as much, since SQLite keeps a copy of each page of each index in
 * case that it has to take the row back.
 */
export function createListEnqueue(context: SqlContext): ListEnqueue {
  const statements = newRunStatements(context, { guard: null })
  const alone = newRunStatements(context, { guard: null, returning: sql`returning ${ADDED}` })
  const added = addedStatement(context)

  function bindAll(runs: readonly NewRun[]): readonly CompiledQuery[] {
    const [first] = runs
    if (first === undefined) return []
    if (runs.length === 1) return bindNewRun(alone, first, { extra: {}, firstId: null })
    const firstId = first.id
    const queries = runs.flatMap((run) =>
      bindNewRun(statements, run, { extra: {}, firstId: run === first ? null : firstId }),
    )
    return [...queries, added.bind({ ids: JSON.stringify(runs.map(({ id }) => id)) })]
  }

  return {
    send: async (target, runs) => read(runs, await target.write(bindAll(runs))),
    sendNow(target, runs) {
      const results = target.writeNow?.(bindAll(runs)) ?? null
      return results === null ? null : read(runs, results)
    },
  }
}

function read(runs: readonly NewRun[], results: readonly Rows[]): Inserted {
  const found = (runs.length === 1 ? results[0] : results.at(-1)) ?? []
  const rows = new Map(found.map((row) => [row['id'], row]))
  return runs.map((run) => {
    const row = rows.get(run.id)
    return row === undefined ? null : freshRun(run, row)
  })
}

const ADDED = sql`id, version, available_at, created_at`

function addedStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'ids'>(
    context,
    (p) => sql`select ${ADDED} from ${tables.runs}
      where id in (select value from ${dialect.listOf(p('ids'))})`,
  )
}
