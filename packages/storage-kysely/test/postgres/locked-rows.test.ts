import type { RunRecord } from '@coji/durably-core'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { claim, leaseOf, newRun, RECOVER_ALL } from '../builders'

let database: PostgresDatabase
let storage: KyselyStorage
let somebody: pg.Client

beforeAll(async () => {
  database = await createDatabase()
  storage = createKyselyStorage({ dialect: postgres({ connectionString: database.url, listen: false }) })
  await storage.migrate()
  somebody = new pg.Client({ connectionString: database.url })
  await somebody.connect()
})

afterAll(async () => {
  await somebody.end()
  await storage.close()
  await database.drop()
})

/** Three runs of one worker, of which a session that is not durably's holds the first. */
async function threeRuns(act: (runs: readonly RunRecord[]) => Promise<void>): Promise<void> {
  await storage.enqueue([newRun(), newRun(), newRun()])
  const runs = await claim(storage, 3)
  await somebody.query('begin')
  await somebody.query('select 1 from durably_runs where id = $1 for update', [runs[0]?.id])
  try {
    await act(runs)
  } finally {
    await somebody.query('rollback')
  }
}

it('renews what nobody holds, and does not take the rest for lost', async () => {
  await threeRuns(async (runs) => {
    const [held, ...free] = runs
    const stale = runs.slice(2).map((run) => ({ ...leaseOf(run), token: 'another' }))
    const answers = await storage.renew([...runs.map(leaseOf), ...stale], 600_000)
    expect(answers.map(({ kept }) => kept)).toEqual([true, true, true, false])
    const leaseOfRun = async (run: RunRecord | undefined) => (await storage.getRun(run?.id ?? ''))?.leaseUntil ?? ''
    expect(await leaseOfRun(held)).toBe(held?.leaseUntil)
    for (const run of free) expect(Date.parse(await leaseOfRun(run))).toBeGreaterThan(Date.parse(run.leaseUntil ?? ''))
  })
})

it('recovers what nobody holds', async () => {
  await threeRuns(async (runs) => {
    await storage.renew(runs.slice(1).map(leaseOf), -1)
    const recovered = await storage.recover(RECOVER_ALL)
    expect(recovered.map(({ id }) => id).sort()).toEqual(
      runs
        .slice(1)
        .map(({ id }) => id)
        .sort(),
    )
  })
})
