import { type ContractCase, STORAGE_CONTRACT } from '@coji/durably-core/testing'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { FENCES, type FenceName, type Fences } from '../src/fences'
import { createKyselyStorageWith, type KyselyStorage } from '../src/kysely-storage'
import { claim, COMPLETE, leaseOf, newCommit, newStep, RECOVER_ALL, startRun } from './builders'
import { contractSetup } from './contract-setup'
import { counting } from './counting'
import { type TestDatabase, tempFile } from './databases'

const NAMES = Object.keys(FENCES) as FenceName[]

/** The fences with one that always lets through. */
function without(name: FenceName): Fences {
  return { ...FENCES, [name]: () => sql`1 = 1` }
}

const database: TestDatabase = {
  name: 'better-sqlite3',
  async open() {
    const { file, remove } = tempFile()
    return { location: file, connect: () => betterSqlite3(file), dispose: async () => remove() }
  },
}

/** Fences against what happens between a look and a write, which no sequence of calls can show. */
const RACES: Partial<Record<FenceName, (fences: Fences) => Promise<void>>> = {
  'recover.unchanged': (fences) =>
    withTwo(fences, async ({ storage, other, afterTheLook }) => {
      const run = await startRun(other)
      await other.renew([leaseOf(run)], -1)
      afterTheLook(() => other.renew([leaseOf(run)], 60_000))
      expect(await storage.recover(RECOVER_ALL)).toEqual([])
      expect((await other.commit([newCommit(run, { steps: [newStep()] })]))[0]).toMatchObject({ kept: true })
    }),
  'purge.unchanged': (fences) =>
    withTwo(fences, async ({ storage, other, afterTheLook }) => {
      const run = await startRun(other)
      await other.commit([newCommit(run, { outcome: COMPLETE })])
      const failed = await startRun(other)
      await other.commit([newCommit(failed, { outcome: FAIL })])
      afterTheLook(async () => {
        await other.command({ kind: 'retry', runId: failed.id, events: [] })
        const [again] = await claim(other)
        if (again !== undefined) await other.commit([newCommit(again, { outcome: COMPLETE })])
      })
      expect(await storage.purge({ statuses: ['completed', 'failed'], limit: 10 })).toBe(1)
      expect(await other.getRun(failed.id)).toMatchObject({ status: 'completed', attempt: 2 })
    }),
}

describe('each fence is needed', () => {
  for (const name of NAMES) {
    it(name, { timeout: 120_000 }, async () => {
      const race = RACES[name]
      if (race !== undefined) {
        await race(FENCES)
        await expect(race(without(name))).rejects.toThrow()
        return
      }
      expect(await firstBroken(without(name), name)).not.toBe(null)
    })
  }
})

/** The first case of the contract that notices; those that speak of the fence's call come first. */
async function firstBroken(fences: Fences, name: FenceName): Promise<ContractCase | null> {
  const setup = contractSetup(database, fences)
  const [call = ''] = name.split('.')
  const concerns = (one: ContractCase) => Number(one.name.includes(call))
  for (const one of [...STORAGE_CONTRACT].sort((a, b) => concerns(b) - concerns(a))) {
    try {
      await one.run(setup)
    } catch {
      return one
    }
  }
  return null
}

interface Two {
  readonly storage: KyselyStorage
  /** Another one on the same file. */
  readonly other: KyselyStorage
  /** Happens after the first message of the next call of `storage`, before its second. */
  afterTheLook(act: () => Promise<unknown>): void
}

async function withTwo(fences: Fences, test: (two: Two) => Promise<void>): Promise<void> {
  const opened = await database.open()
  const { dialect, beforeNext } = counting(betterSqlite3(opened.location))
  const storage: KyselyStorage = createKyselyStorageWith({ dialect, fences })
  const other: KyselyStorage = createKyselyStorageWith({ dialect: opened.connect(), fences })
  const afterTheLook = (act: () => Promise<unknown>) => {
    beforeNext(async () => {})
    beforeNext(async () => void (await act()))
  }
  try {
    await other.migrate()
    await test({ storage, other, afterTheLook })
  } finally {
    await storage.close()
    await other.close()
    await opened.dispose()
  }
}

const FAIL = { kind: 'fail', error: 'no', detail: { name: 'Error' }, events: [], eventsIfCancelled: [] } as const
