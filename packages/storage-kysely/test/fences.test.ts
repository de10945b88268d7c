import { type ContractCase, STORAGE_CONTRACT } from '@coji/durably-core/testing'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { DurablyDialect } from '../src'
import { type FenceName, FENCES, type Fences } from '../src/statement/fences'
import { createKyselyStorageWith, type KyselyStorage } from '../src/kysely-storage'
import { claim, COMPLETE, leaseOf, newCommit, newStep, RECOVER_ALL, startRun } from './builders'
import { contractSetup } from './contract-setup'
import { counting } from './counting'
import { DATABASES, type TestDatabase } from './databases'
import noticedBy from './noticed-by.json' with { type: 'json' }

const NAMES = Object.keys(FENCES) as FenceName[]

/** The fences with one that always lets through. */
function without(name: FenceName): Fences {
  return { ...FENCES, [name]: () => sql`1 = 1` }
}

/** One for each way of writing the statements. */
const PLACES = DATABASES.filter(({ name }) => name === 'better-sqlite3' || name === 'postgres')

/** Fences against what happens between a look and a write, which no sequence of calls can show. */
const RACES: Partial<Record<FenceName, (place: Place) => Promise<void>>> = {
  'recover.unchanged': (place) =>
    withTwo(place, async ({ storage, other, afterTheLook }) => {
      const run = await startRun(other)
      await other.renew([leaseOf(run)], -1)
      afterTheLook(() => other.renew([leaseOf(run)], 60_000))
      expect(await storage.recover(RECOVER_ALL)).toEqual([])
      expect((await other.commit([newCommit(run, { steps: [newStep()] })]))[0]).toMatchObject({ kept: true })
    }),
  'purge.unchanged': (place) =>
    withTwo(place, async ({ storage, other, afterTheLook }) => {
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
  'replay.round': (place) =>
    withTwo(place, async ({ storage, other, afterTheLook }) => {
      const ids = [await deliverOne(other), await deliverOne(other)]
      const { next } = await storage.cluster.inbox.replay({ query: {}, limit: 1 })
      if (next === null) throw new Error('There is a second message.')
      afterTheLook(() => other.cluster.inbox.replay({ query: {}, limit: 1, cursor: next }))
      const late = await storage.cluster.inbox.replay({ query: {}, limit: 1, cursor: next })
      expect(late.replayed).toBe(0)
      // Those of one millisecond are in any order.
      const rounds = new Map((await other.cluster.inbox.list({})).map(({ id, round }) => [id, round]))
      expect(rounds).toEqual(new Map(ids.map((id) => [id, 1])))
    }),
}

/**
 * A run that is not running has no lease that could run out, and no owner: a constraint and each write see to that. On
 * SQLite it is the index that asks for the status.
 */
const IMPLIED: Readonly<Record<string, readonly FenceName[]>> = { postgres: ['recover.status'] }

describe.each(PLACES)('each fence is needed on $name', (database) => {
  const names = NAMES.filter((name) => IMPLIED[database.name]?.includes(name) !== true)

  it.each(names)('%s', async (name) => {
    const race = RACES[name]
    if (race !== undefined) {
      await race({ database, fences: FENCES })
      await expect(race({ database, fences: without(name) })).rejects.toThrow()
      return
    }
    expect(await firstBroken({ database, fences: without(name) }, name)).not.toBe(null)
  })
})

interface Place {
  readonly database: TestDatabase
  readonly fences: Fences
}

/** The case that noticed before, to be asked first. With a name that is gone it takes longer, and nothing else. */
const NOTICED: Readonly<Record<string, string>> = noticedBy

/** The first case of the contract that notices; those that speak of the fence's call come first. */
async function firstBroken({ database, fences }: Place, name: FenceName): Promise<ContractCase | null> {
  const setup = contractSetup(database, fences)
  const [call = ''] = name.split('.')
  // Also by the form that says what goes on: what archives is in the cases of archiving.
  const stem = call.replace(/e$/, '')
  const concerns = (one: ContractCase) => Number(one.name.includes(stem)) + 2 * Number(NOTICED[name] === one.name)
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
  /** Another one on the same database. */
  readonly other: KyselyStorage
  /** Happens after the first message of the next call of `storage`, before its second. */
  afterTheLook(act: () => Promise<unknown>): void
}

async function withTwo({ database, fences }: Place, test: (two: Two) => Promise<void>): Promise<void> {
  const opened = await database.open()
  const { dialect, beforeNext } = counting(opened.connect() as DurablyDialect)
  const storage: KyselyStorage = createKyselyStorageWith({ dialect, fences })
  const other: KyselyStorage = createKyselyStorageWith({ dialect: opened.connect(), fences })
  const afterTheLook = (act: () => Promise<unknown>) => {
    beforeNext(async () => {})
    beforeNext(async () => void (await act()))
  }
  try {
    await other.migrate()
    // Before its first write it looks at the tables.
    await storage.checkSchema()
    await test({ storage, other, afterTheLook })
  } finally {
    await storage.close()
    await other.close()
    await opened.dispose()
  }
}

async function deliverOne({ cluster }: KyselyStorage): Promise<string> {
  const id = crypto.randomUUID()
  const content = { tenant: '', type: 'x', payload: null, dedupeKey: null } as const
  await cluster.inbox.publish([{ id, ...content, start: { afterMs: 0 } }])
  const lead = await cluster.lead({ name: 'inbox', workerId: 'w', ttlMs: 60_000 })
  if (lead === null) throw new Error('The lead is free.')
  await cluster.inbox.deliver(lead, [{ messageId: id, round: 0, wanted: 0, runs: [], gathered: [] }])
  return id
}

const FAIL = { kind: 'fail', error: 'no', detail: { name: 'Error' }, events: [], eventsIfCancelled: [] } as const
