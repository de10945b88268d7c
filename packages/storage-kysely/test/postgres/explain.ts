import type { CompiledQuery } from 'kysely'
import pg from 'pg'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { createDatabase } from '../../../../test/postgres'
import { counting } from '../counting'

/** A node of a plan, as `explain (format json)` shows it. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly 'Relation Name'?: string
  readonly 'Actual Loops': number
  readonly 'Total Cost': number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

export interface Explained {
  /** What touches tables and was executed, in the order of the plan. */
  readonly accesses: readonly string[]
  /** Each index that leads to rows, also one of which only a bitmap is made. */
  readonly indexes: ReadonlySet<string>
  readonly buffers: number
  readonly ms: number
  /** Of the dearest statement, as the planner believes. */
  readonly cost: number
}

/** A storage on a database of its own whose statements can be looked at without happening. */
export interface ExplainBench {
  readonly storage: KyselyStorage
  execute(statement: string): Promise<void>
  query<T extends pg.QueryResultRow>(statement: string): Promise<readonly T[]>
  /** The statements of the first message that `act` sends, explained; afterwards nothing has happened. */
  explain(act: (storage: KyselyStorage) => Promise<unknown>): Promise<Explained>
  /** Each statement that `act` sends, explained. It only reads. */
  explainReads(act: (storage: KyselyStorage) => Promise<unknown>): Promise<readonly Explained[]>
  close(): Promise<void>
}

export async function explainBench(): Promise<ExplainBench> {
  const { url, drop } = await createDatabase()
  const { dialect, messages, beforeNext } = counting(postgres({ connectionString: url, listen: false }))
  const storage = createKyselyStorage({ dialect })
  await storage.migrate()
  const client = new pg.Client({ connectionString: url })
  await client.connect()

  async function statementsOf(act: (storage: KyselyStorage) => Promise<unknown>): Promise<readonly CompiledQuery[]> {
    beforeNext(() => Promise.reject(new Error('This statement is only looked at.')))
    await act(storage).catch(() => {})
    return messages.at(-1) ?? []
  }

  return {
    storage,
    execute: async (statement) => void (await client.query(statement)),
    query: async (statement) => (await client.query(statement)).rows,
    async explain(act) {
      const statements = await statementsOf(act)
      await client.query('begin')
      try {
        // The first time finds pages to prune and statistics to read.
        await client.query('savepoint first')
        for (const statement of statements) await explainOne(client, statement)
        await client.query('rollback to savepoint first')
        const plans: Explained[] = []
        for (const statement of statements) plans.push(await explainOne(client, statement))
        return {
          accesses: plans.flatMap(({ accesses }) => accesses),
          indexes: new Set(plans.flatMap(({ indexes }) => [...indexes])),
          buffers: plans.reduce((sum, { buffers }) => sum + buffers, 0),
          ms: plans.reduce((sum, { ms }) => sum + ms, 0),
          cost: Math.max(...plans.map(({ cost }) => cost)),
        }
      } finally {
        await client.query('rollback')
      }
    },
    async explainReads(act) {
      messages.length = 0
      await act(storage)
      const plans: Explained[] = []
      for (const statement of messages.flat()) plans.push(await explainOne(client, statement))
      return plans
    },
    async close() {
      await client.end()
      await storage.close()
      await drop()
    },
  }
}

async function explainOne(client: pg.Client, { sql, parameters }: CompiledQuery): Promise<Explained> {
  const { rows } = await client.query<{
    readonly 'QUERY PLAN': readonly [{ Plan: PlanNode; 'Execution Time': number }]
  }>(`explain (analyze, buffers, format json) ${sql}`, [...parameters])
  const plan = rows[0]?.['QUERY PLAN'][0]
  if (plan === undefined) throw new Error('Postgres gave no plan.')
  const { Plan: root, 'Execution Time': ms } = plan
  const buffers = root['Shared Hit Blocks'] + root['Shared Read Blocks']
  return { accesses: accessesOf(root), indexes: new Set(indexesOf(root)), buffers, ms, cost: root['Total Cost'] }
}

function accessesOf(node: PlanNode): string[] {
  const { 'Node Type': type, 'Index Name': index, 'Relation Name': table, Plans: inner = [] } = node
  const own = table === undefined || node['Actual Loops'] === 0 ? [] : [[type, index ?? table].join(' ')]
  return [...own, ...inner.flatMap(accessesOf)]
}

function indexesOf({ 'Actual Loops': loops, 'Index Name': index, Plans: inner = [] }: PlanNode): string[] {
  const own = index === undefined || loops === 0 ? [] : [index]
  return [...own, ...inner.flatMap(indexesOf)]
}
