import type { CountQuery, RunQuery } from '@coji/durably-core/storage'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { postgres } from '../../src/drivers/postgres'
import { createKyselyStorageWith, type KyselyStorage } from '../../src/kysely-storage'
import { FENCES } from '../../src/statement'
import { type Counted, counting } from '../counting'

const STRETCH = 10
const MANY = 50 * STRETCH
const OTHER_JOBS = Array.from({ length: 60 }, (_, n) => `other${n}`)

let database: PostgresDatabase
let client: pg.Client
let counted: Counted
let storage: KyselyStorage

beforeAll(async () => {
  database = await createDatabase()
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  counted = counting(postgres({ connectionString: database.url, listen: false }))
  storage = createKyselyStorageWith({ dialect: counted.dialect, fences: FENCES, stretch: STRETCH })
  await storage.migrate()
})

beforeEach(() => client.query('truncate durably_runs'))

afterAll(async () => {
  await client.end()
  await storage.close()
  await database.drop()
})

interface Batch {
  readonly prefix: string
  readonly count: number
  readonly at: string
  readonly isCompleted?: boolean
}

/** All in one instant, as a batch is. */
async function insert({ prefix, count, at, isCompleted = false }: Batch): Promise<void> {
  const [status, finishedAt] = isCompleted ? ['completed', at] : ['pending', null]
  await client.query(
    `insert into durably_runs (id, job_name, payload, status, created_at, updated_at, finished_at)
      select $1 || lpad(i::text, 6, '0'), 'job', '{}', $2, $3, $3, $4 from generate_series(1, $5::integer) as i`,
    [prefix, status, at, finishedAt, count],
  )
}

/** One run is looked for. There are as many others as the stretch of it has room for, and fewer. */
async function insertSome(others: number): Promise<void> {
  await insert({ prefix: 'A', count: 1, at: OLDEST, isCompleted: true })
  await insert({ prefix: 'B', count: others, at: '2026-01-02T00:00:00Z' })
}

interface Case {
  readonly others: number
  readonly at: string
}

/** A batch comes between the statement that measures and the one that reads. */
async function meanwhile<T>({ at }: Case, act: () => Promise<T>): Promise<T> {
  let hasCome = false
  counted.beforeNext(async () => {})
  counted.beforeNext(async () => {
    await insert({ prefix: 'C', count: MANY, at })
    hasCome = true
  })
  const answer = await act()
  expect(hasCome).toBe(true)
  return answer
}

const OLDEST = '2026-01-01T00:00:00.000Z'
const NEWER = '2026-01-03T00:00:00Z'
const BETWEEN = '2026-01-01T12:00:00Z'

const ASKED: Readonly<Record<string, RunQuery & CountQuery>> = {
  'a status and a job': { jobNames: ['job'], statuses: ['completed'] },
  'a status and jobs': { jobNames: ['job', 'none'], statuses: ['completed'] },
  'the beginning of an id': { idPrefix: 'A', statuses: ['completed', 'pending'] },
  'jobs that are not looked for one by one': { jobNames: ['job', ...OTHER_JOBS], createdFrom: OLDEST },
  'a status and jobs that are not looked for one by one': {
    ...{ jobNames: ['job', ...OTHER_JOBS], statuses: ['completed', 'pending'] },
    ...{ createdFrom: OLDEST },
  },
}

const CASES = Object.entries(ASKED).flatMap(([name, query]) =>
  [STRETCH / 2, 3 * STRETCH].flatMap((others) => [NEWER, BETWEEN].map((at) => ({ name, query, others, at }))),
)

async function before<T>({ others }: Case, act: () => Promise<T>): Promise<T> {
  await insertSome(others)
  return act()
}

it.each(CASES)('$name: a page has what was there before $others others and a batch', async (one) => {
  const idsOf = async () => (await storage.getRuns({ ...one.query, limit: 10 * MANY })).map(({ id }) => id)
  const old = await before(one, idsOf)
  expect(await meanwhile(one, idsOf)).toEqual(expect.arrayContaining(old))
})

it.each(CASES)('$name: counts up to a number have it', async (one) => {
  const count = () => storage.counts({ ...one.query, upTo: 10 * MANY })
  const old = await before(one, count)
  const { completed, pending } = await meanwhile(one, count)
  expect(completed).toBe(1)
  expect(pending).toBeGreaterThanOrEqual(old.pending)
})

it.each(CASES)('$name: counts have it', async (one) => {
  const count = () => storage.counts(one.query)
  const old = await before(one, count)
  const { completed, pending } = await meanwhile(one, count)
  expect(completed).toBe(1)
  expect(pending).toBeGreaterThanOrEqual(old.pending)
})

it('comes to an end where more are of one instant than a statement reads', async () => {
  await insertSome(MANY)
  const query = { jobNames: ['job', ...OTHER_JOBS], statuses: ['pending', 'completed'] } as const
  expect(await storage.getRuns({ ...query, limit: 10 * MANY })).toHaveLength(MANY + 1)
  expect(await storage.counts({ ...query, upTo: 10 * MANY })).toMatchObject({ pending: MANY, completed: 1 })
})
