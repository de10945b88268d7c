import Database from 'better-sqlite3'
import type { CompiledQuery } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportSuite } from '../../../test/report'
import { SCALE, scaled } from '../../../test/scale'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { type Counted, counting } from './counting'
import { tempFile } from './databases'
import {
  bestMs,
  COUNTS,
  countedBothWays,
  countHours,
  fillOthers,
  Heart,
  LISTS,
  longest,
  MIXTURES,
  MOST_MS,
  PIECES,
  MONTHS,
  READS,
  readMonth,
  reportIndexes,
} from './searches'

const RUNS = scaled({ quick: 20_000, full: 1_000_000 })

/**
 * Most runs are of one tenant and one job and have completed; one in ten is of others, one in a hundred failed, a fifth waits,
 * and a few at the beginning of all are of a tenant, a job and a label of their own.
 */
const FILL = [
  `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${RUNS}),
  made as (
    select i, case when i <= 20 then 'rare' when i % 10 = 0 then 'tenant' || (i / 10 % 50) else 'acme' end as tenant,
      case when i <= 20 then 'rare' when i % 7 = 0 then 'job' || (i / 7 % 20) else 'job' end as job,
      case when i > ${RUNS} * 0.8 then 'pending' when i % 97 = 0 then 'failed' when i % 101 = 0 then 'cancelled'
        else 'completed' end as status,
      strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + i * 2.5, 'unixepoch') as at from n)
  insert into durably_runs (id, tenant, job_name, payload, status, available_at, waiting_for, error, error_detail, output,
    created_at, updated_at, finished_at, parent_run_id)
  select '01' || printf('%024d', i), tenant, job, '{"n":' || i || '}', status,
    case when status = 'pending' and i % 3 > 0 then null else at end,
    case when status <> 'pending' then null when i % 3 = 1 then '{"kind":"steps","steps":["approval"]}'
      when i % 3 = 2 and i % 1000 < 10 then '{"kind":"unpark","reason":"changed"}' when i % 3 = 0 then '{"kind":"retry"}' end,
    case when status = 'failed' then 'broken' end,
    case when status = 'failed' then case when i = 97 then '{"name":"Error","code":"E_RARE"}'
      else '{"name":"Error","code":"E_OFTEN"}' end end,
    case when status = 'completed' then '"done"' end, at, at,
    case when status not in ('pending') then at end, case when i % 5 = 1 then '01' || printf('%024d', 9) end
  from made`,
  `insert into durably_run_labels (run_id, name, value, tenant, created_at)
    select id, 'team', case when tenant = 'rare' then 'rare' else 'red' end, tenant, created_at from durably_runs`,
  `insert into durably_run_labels (run_id, name, value, tenant, created_at)
    select id, 'size', 'L', tenant, created_at from durably_runs where rowid % 7 = 0`,
  `insert into durably_steps (id, run_id, name, "index", kind, status, attempt, wait_name, lease_epoch, claim_token, started_at)
    select 'S' || id, id, 'approval', 0, case substr(id, -3) when '001' then 'signal' when '004' then 'child' else 'sleep' end, 'waiting', 1,
      'approval', 1, 'token', created_at from durably_runs where json_extract(waiting_for, '$.kind') = 'steps'`,
  ...fillOthers({
    nth: 'rowid',
    numbers: (count) =>
      `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count}) select i from n`,
    json: (text) => text,
  }),
]

/** Of what is rare: how far each index comes, and what is there. */
const LONG_AGO = '2000-01-01T00:00:00.000Z'

const FEW_STATEMENTS = 3

/** In the quick lane, of what is not rare in any index: two for each stretch, for each number that is counted apart. */
const MANY_STATEMENTS: Readonly<Record<string, number>> = {
  'a label and a job of which none has it': 6,
  'a label, a job and a status of a tenant': 6,
  'more jobs than are looked for one by one': 36,
  'parked ones': 10,
  'counts of a job': 27,
  'counts of a label': 27,
  'counts of a label and a job of which none has it': 23,
  'counts of a tenant': 9,
  'counts of a time': 11,
  'counts of everything': 11,
  'counts of many children': 45,
  'counts of parked ones': 21,
  'counts of several jobs': 31,
  'counts of the beginning of every id': 27,
  'counts of those that wait for a retry': 13,
  'counts of those that wait for a time': 9,
}

function most(times: Readonly<Record<string, number>>): readonly [name: string, ms: number] {
  return Object.entries(times).sort(([, a], [, b]) => b - a)[0] ?? ['', 0]
}

describe(`lists and counts of ${RUNS} runs`, () => {
  const { file, remove } = tempFile()
  let counted: Counted
  let storage: KyselyStorage
  let raw: Database.Database

  beforeAll(async () => {
    counted = counting(betterSqlite3(file))
    storage = createKyselyStorage({ dialect: counted.dialect })
    await storage.migrate()
    raw = new Database(file)
    for (const statement of FILL) raw.exec(statement)
    await countHours(storage)
  })

  afterAll(async () => {
    raw.close()
    await storage.close()
    remove()
  })

  async function plansOf(act: () => Promise<unknown>): Promise<readonly string[]> {
    counted.messages.length = 0
    await act()
    return counted.messages.flat().flatMap(planOf)
  }

  function planOf({ sql, parameters }: CompiledQuery): readonly string[] {
    const rows = raw.prepare<unknown[], { detail: string }>(`explain query plan ${sql}`).all(...parameters)
    return rows.map(({ detail }) => detail)
  }

  const LOOKS_AT_ALL = /^SCAN (r|q|s|l|l2)\b(?!.*USING)/
  const SORTS = 'USE TEMP B-TREE FOR ORDER BY'

  it.each(Object.entries({ ...LISTS, ...MIXTURES }))('%s: no table is read from end to end', async (_name, query) => {
    const plan = await plansOf(() => storage.getRuns(query))
    expect(plan.filter((line) => LOOKS_AT_ALL.test(line))).toEqual([])
  })

  it.each(Object.entries(COUNTS))('counts of %s: no table is read from end to end', async (_name, query) => {
    const plan = await plansOf(() => storage.counts(query))
    expect(plan.filter((line) => LOOKS_AT_ALL.test(line))).toEqual([])
  })

  it.each(Object.entries(LISTS))('%s: is one statement', async (_name, query) => {
    counted.messages.length = 0
    await storage.getRuns(query)
    expect(counted.messages.flat()).toHaveLength(1)
  })

  const OF_A_JOB: Readonly<Record<string, (storage: KyselyStorage) => Promise<unknown>>> = {
    'a purge of a job': (storage) =>
      storage.purge({ statuses: ['failed'], jobNames: ['none'], before: LONG_AGO, limit: 50 }),
    'a purge of a job beyond those to keep': (storage) =>
      storage.purge({ statuses: ['completed', 'failed'], jobNames: ['none', 'rare'], keepNewest: 100, limit: 50 }),
    'counts of a job': (storage) => storage.counts({ jobNames: ['rare'] }),
    'counts of a job of a tenant': (storage) => storage.counts({ tenant: 'acme', jobNames: ['rare'] }),
  }

  it.each(Object.entries(OF_A_JOB))('%s: no run of another is passed', async (_name, act) => {
    const plan = (await plansOf(() => act(storage))).filter((line) => /\br USING/.test(line))
    const isOfJob =
      /^SEARCH r USING .*INDEX \w+_(job_finished|due|of_tenant_job) \(.*job_name=\?|_(running|assigned|orphaned)\b|id=\?/
    expect(plan).not.toEqual([])
    expect(plan.filter((line) => !isOfJob.test(line))).toEqual([])
  })

  const inOrder = Object.entries(LISTS).filter(([name]) => !/ids|holders|states|jobs/.test(name))
  it.each(inOrder)('%s: nothing is sorted but runs of one instant', async (_name, query) => {
    const plan = await plansOf(() => storage.getRuns(query))
    expect(plan.filter((line) => line === SORTS)).toEqual([])
  })

  const ofLogs = Object.entries({ ...PIECES, ...READS }).filter(([name]) => /logs of a run/.test(name))
  it.each(ofLogs)('%s: a page reads its own and no others', async (_name, act) => {
    const plan = (await plansOf(() => act(storage))).filter((line) => /\bl\b|ORDER BY/.test(line))
    expect(new Set(plan)).toEqual(new Set(['SEARCH l USING INDEX durably_logs_written (run_id=? AND rowid>?)']))
  })

  it.each(Object.entries(COUNTS))('counts of %s are right up to where they end', async (_name, query) => {
    const { capped, whole } = await countedBothWays(storage, query)
    expect(capped).toEqual(whole)
  })

  const SEARCHES: readonly (readonly [string, () => Promise<unknown>])[] = [
    ...Object.entries(MIXTURES).map(([name, query]) => [name, () => storage.getRuns(query)] as const),
    ...Object.entries(COUNTS).map(([name, query]) => [`counts of ${name}`, () => storage.counts(query)] as const),
  ]

  const pieces = Object.entries(PIECES).map(([name, act]) => [name, () => act(storage)] as const)

  // better-sqlite3 answers within the call.
  it.each([...SEARCHES, ...pieces])(
    '%s: each statement has a turn of the event loop of its own',
    async (_name, act) => {
      const heart = new Heart()
      const turns: number[] = []
      // Once a minute the first write asks for the version of the tables.
      await storage.checkSchema()
      counted.beforeEach(() => turns.push(heart.beats))
      heart.start()
      await act()
      heart.stop()
      expect(turns).toEqual([...new Set(turns)])
      expect(turns).not.toEqual([])
    },
  )

  it('finds in stretches what one statement would find', async () => {
    const { inbox } = storage.cluster
    const isUnwanted = `tenant = 'acme' and processed_at is not null and wanted = 0`
    const found = await inbox.list({ tenant: 'acme', isUnwanted: true })
    const ids = raw.prepare(`select id from durably_inbox where ${isUnwanted} order by created_at, id`).pluck().all()
    expect(ids).not.toEqual([])
    expect(found.map(({ id }) => id)).toEqual(ids)
    const count = (condition: string) =>
      raw.prepare(`select count(*) from durably_inbox where tenant = 'acme' and ${condition}`).pluck().get()
    expect(await inbox.counts({ tenant: 'acme' })).toEqual({
      waiting: count('processed_at is null'),
      processed: count('processed_at is not null'),
      unwanted: ids.length,
    })
  })

  /** As many as a statement looks at. */
  const STRETCH = 1000

  it.each(pieces)('%s: no statement brings more than a stretch', async (_name, act) => {
    counted.messages.length = 0
    await act()
    const read = counted.messages
      .flat()
      .map(({ sql, parameters }) => raw.prepare<unknown[]>(sql).all(...parameters).length)
    expect(Math.max(...read)).toBeLessThanOrEqual(STRETCH)
  })

  async function statementsOf(act: () => Promise<unknown>): Promise<number> {
    counted.messages.length = 0
    await act()
    return counted.messages.flat().length
  }

  it('sends no more statements than it takes to come to the runs', async () => {
    const sent: Record<string, number> = {}
    for (const [name, act] of SEARCHES) sent[name] = await statementsOf(act)
    reportSuite({ suite: `statements of searches through ${RUNS} runs`, ...sent })
    const many = Object.entries(sent).filter(([, statements]) => statements > FEW_STATEMENTS)
    if (SCALE === 'quick') expect(Object.fromEntries(many)).toEqual(MANY_STATEMENTS)
  })

  const times: Record<string, number> = {}
  const stalls: Record<string, number> = {}
  const ALL: readonly (readonly [string, () => Promise<unknown>])[] = [
    ...Object.entries(LISTS).map(([name, query]) => [name, () => storage.getRuns(query)] as const),
    ...SEARCHES,
    ...pieces,
    ...Object.entries(READS).map(([name, read]) => [name, () => read(storage)] as const),
  ]

  it.each(ALL)('%s: takes no longer than a worker can stand still', async (name, act) => {
    const { ms, stallMs } = await longest(counted.times, act)
    times[name] = ms
    stalls[name] = stallMs
    if (SCALE === 'full') expect(Math.max(ms, stallMs)).toBeLessThan(MOST_MS.statement)
  })

  it('reads a month in no time', async () => {
    const [slowest, ms] = most(times)
    const [stalling, stallMs] = most(stalls)
    const month = await bestMs(() => readMonth(storage), MONTHS)
    reportSuite({
      ...{ suite: `lists of ${RUNS} runs`, slowest, ms: ms.toFixed(1), 'ms of a month': month.toFixed(1) },
      ...{ 'longest stall': stalling, 'ms of it': stallMs.toFixed(1) },
    })
    if (SCALE === 'full') expect(month).toBeLessThan(MOST_MS.month)
  })

  it('has indexes for them that triggers and commits pay for', async () => {
    const costs = await reportIndexes(storage, (statement) => raw.exec(statement))
    reportSuite({ suite: 'indexes of lists on SQLite', ...costs })
  })
})
