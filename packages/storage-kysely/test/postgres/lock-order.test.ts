import { randomUUID } from 'node:crypto'
import type { RunRecord } from '@coji/durably-core/storage'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresUrl } from '../../../../test/postgres'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { COMPLETE, newCommit, newRun, newStep } from '../builders'
import { Watch } from './orders'
import { waitLong } from './session'

/** Where the order of texts is not that of their bytes. */
const NAME = `durably_test_${randomUUID().replaceAll('-', '')}`
let server: Watch
let watch: Watch
let storage: KyselyStorage
let pool: pg.Pool

beforeAll(async () => {
  const url = new URL(await postgresUrl())
  server = await Watch.open(url.href)
  await server.query(
    `create database ${NAME} template template0 locale_provider icu icu_locale 'en-US' strategy file_copy`,
  )
  url.pathname = `/${NAME}`
  watch = await Watch.open(url.href)
  pool = new pg.Pool({ connectionString: url.href }).on('connect', waitLong)
  storage = createKyselyStorage({ dialect: postgres({ pool, listen: false }) })
  await storage.migrate()
})

afterAll(async () => {
  await storage.close()
  await pool.end()
  await watch.end()
  await server.query(`drop database ${NAME} with (force)`)
  await server.end()
})

/** Renewals and recoveries pass over what is locked. */
const WRITES: Readonly<Record<string, (lower: RunRecord, upper: RunRecord) => Promise<unknown>>> = {
  'steps of two runs': (...runs) => storage.commit(runs.map((run) => newCommit(run, { steps: [newStep()] }))),
  'two runs that end': (...runs) => storage.commit(runs.map((run) => newCommit(run, { outcome: COMPLETE }))),
}

it.each(Object.keys(WRITES))('%s locks the runs in the order that all others lock them in', async (name) => {
  const ids = [`a-${randomUUID()}`, `B-${randomUUID()}`]
  await storage.enqueue(ids.map((id) => newRun({ id, jobName: name })))
  const terms = { workerId: 'worker', claimToken: name, jobs: [name], leaseMs: 60_000, holdsSuspect: false, events: [] }
  const runs = await storage.claim({ ...terms, limit: 2 })
  const [lower, upper] = ids.map((id) => runs.find((run) => run.id === id))
  if (lower === undefined || upper === undefined) throw new Error('They were not claimed.')
  await watch.query('begin')
  await watch.query('select 1 from durably_runs where id = $1 for update', [lower.id])
  const write = WRITES[name]?.(lower, upper)
  const isBlocked = () =>
    server.query(`select 1 from pg_stat_activity where datname = '${NAME}' and wait_event_type = 'Lock'`)
  await expect.poll(isBlocked, { interval: 2 }).toHaveLength(1)
  const free = await watch.query('select id from durably_runs where id = $1 for update skip locked', [upper.id])
  await watch.query('commit')
  await write
  expect(free).toEqual([])
})
