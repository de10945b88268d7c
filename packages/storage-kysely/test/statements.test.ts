import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKyselyStorage, type KyselyStorage } from '../src'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { libsql } from '../src/drivers/libsql'
import { claim, claimWithin, COMPLETE, leaseOf, newCommit, newRun, newStep, RECOVER_ALL, startRun } from './builders'
import { type Counted, counting } from './counting'
import { tempFile } from './databases'
import { type HranaServer, serveHrana } from './hrana-server'

describe('statements per call', () => {
  let counted: Counted
  let storage: KyselyStorage

  beforeEach(async () => {
    counted = counting(betterSqlite3(':memory:'))
    storage = createKyselyStorage({ dialect: counted.dialect })
    await storage.migrate()
  })

  afterEach(() => storage.close())

  async function sizesOf(call: () => Promise<unknown>): Promise<number[]> {
    counted.messages.length = 0
    await call()
    return counted.messages.map((queries) => queries.length)
  }

  it('a step without history is one message of two', async () => {
    const run = await startRun(storage)
    expect(await sizesOf(() => storage.commit([newCommit(run, { steps: [newStep()] })]))).toEqual([2])
  })

  it('each event adds one', async () => {
    const run = await startRun(storage)
    const events = [
      { type: 'step:start', payload: '{}' },
      { type: 'step:complete', payload: '{}' },
    ]
    expect(await sizesOf(() => storage.commit([newCommit(run, { steps: [newStep()], events })]))).toEqual([4])
  })

  it('the end of a run is two: the parent to wake, and the run', async () => {
    const run = await startRun(storage)
    expect(await sizesOf(() => storage.commit([newCommit(run, { outcome: COMPLETE })]))).toEqual([2])
  })

  it('commits of many runs are one message', async () => {
    const runs = [await startRun(storage), await startRun(storage), await startRun(storage)]
    const commits = runs.map((run) => newCommit(run, { steps: [newStep()] }))
    expect(await sizesOf(() => storage.commit(commits))).toEqual([6])
  })

  it('a lost commit costs one more look', async () => {
    const run = await startRun(storage)
    const lost = newCommit(run, { lease: { ...leaseOf(run), token: 'other' }, steps: [newStep()] })
    expect(await sizesOf(() => storage.commit([lost]))).toEqual([2, 1])
  })

  it('a new run is one statement', async () => {
    expect(await sizesOf(() => storage.enqueue([newRun()]))).toEqual([1])
  })

  it('a claim is one message, short while the queue is empty, and a look whether that is so', async () => {
    expect(await sizesOf(() => claim(storage, 1))).toEqual([1, 1])
    expect(await sizesOf(() => claim(storage, 100))).toEqual([2, 1])
    await storage.enqueue([newRun(), newRun()])
    expect(await sizesOf(() => claim(storage, 1))).toEqual([1])
    expect(await sizesOf(() => claim(storage, 100))).toEqual([2])
  })

  it('a claim under limits writes starts down for a rate only, and looks up when it opens', async () => {
    expect(await sizesOf(() => claimWithin(storage, { concurrency: 5 }, 2))).toEqual([2, 1])
    await storage.enqueue([newRun(), newRun(), newRun()])
    const rateLimit = { max: 2, per: 60_000 }
    expect(await sizesOf(() => claimWithin(storage, { rateLimit }, 1))).toEqual([4])
    expect(await sizesOf(() => claimWithin(storage, { rateLimit }, 2))).toEqual([6, 1])
  })

  it('the renewal of many leases is one statement', async () => {
    const leases = [await startRun(storage), await startRun(storage)].map(leaseOf)
    expect(await sizesOf(() => storage.renew(leases, 1000))).toEqual([1])
  })

  it('a check for expired leases that finds none only reads', async () => {
    await startRun(storage)
    expect(await sizesOf(() => storage.recover(RECOVER_ALL))).toEqual([1])
    expect(counted.messages[0]?.[0]?.sql).toMatch(/^select/)
  })

  it('the steps of a run are read in one query', async () => {
    const run = await startRun(storage)
    expect(await sizesOf(() => storage.getSteps(run.id))).toEqual([1])
  })
})

describe('plans', () => {
  it('claims, due times and expired leases are read through their own indexes', async () => {
    const database = new Database(':memory:')
    const { dialect, messages } = counting(betterSqlite3({ database }))
    const storage = createKyselyStorage({ dialect })
    await storage.migrate()
    await storage.enqueue([newRun()])
    const planOf = async (call: () => Promise<unknown>) => {
      messages.length = 0
      await call()
      const query = messages[0]?.[0]
      if (query === undefined) throw new Error('Nothing was sent.')
      const rows = database.prepare(`explain query plan ${query.sql}`).all(query.parameters) as { detail: string }[]
      return rows.map(({ detail }) => detail).join('\n')
    }
    const claimPlan = await planOf(() => claim(storage))
    expect(claimPlan).toMatch(/durably_runs_claim/)
    // What the index on order gives, as far as it is looked at; and only behind blocked runs what comes next in order and the first of
    // each key, which are sorted.
    expect(claimPlan.match(/SCAN r$/gm)).toHaveLength(3)
    expect(claimPlan.match(/TEMP B-TREE/g)).toHaveLength(1)
    expect(claimPlan).toMatch(/durably_runs_claim_by_key \(tenant=\? AND concurrency_key=\? AND concurrency_limit>\?\)/)
    const duePlan = await planOf(() => storage.nextDue(['job']))
    expect(duePlan).not.toMatch(/SCAN r(?! USING)/)
    expect(await planOf(() => storage.recover(RECOVER_ALL))).toMatch(/durably_runs_running/)
    await storage.close()
  })
})

describe('libSQL over HTTP', () => {
  let server: HranaServer
  let storage: KyselyStorage
  let temp: ReturnType<typeof tempFile>

  beforeEach(async () => {
    temp = tempFile()
    server = await serveHrana(temp.file)
    storage = createKyselyStorage({ dialect: libsql(server.url) })
    await storage.migrate()
  })

  afterEach(async () => {
    await storage.close()
    await server.close()
    temp.remove()
  })

  it('sends one request for each commit, whatever is in it', async () => {
    const run = await startRun(storage)
    const before = server.requests()
    const events = [{ type: 'step:complete', payload: '{}' }]
    await storage.commit([newCommit(run, { steps: [newStep(), newStep()], events })])
    expect(server.requests() - before).toBe(1)
    await storage.commit([newCommit(run, { commitNo: 2, outcome: COMPLETE })])
    expect(server.requests() - before).toBe(2)
  })

  it('sends one request for a read', async () => {
    const before = server.requests()
    await storage.getRun('x')
    expect(server.requests() - before).toBe(1)
  })

  it('says STORAGE_UNAVAILABLE when the server is gone', async () => {
    await server.close()
    await expect(storage.getRun('x')).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    server = await serveHrana(temp.file)
  })
})
