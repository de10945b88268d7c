import type { RunRecord } from '@coji/durably-core/storage'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type PostgresDatabase } from '../../../../test/postgres'
import { scaled } from '../../../../test/scale'
import { createKyselyStorage, type KyselyStorage } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { newCommit, newRun, newStep, startRun } from '../builders'
import { Watch } from './orders'

const ROUNDS = scaled({ quick: 20, full: 200 })
const CHILDREN = 6

let database: PostgresDatabase
let watch: Watch
const storages: KyselyStorage[] = []

beforeAll(async () => {
  database = await createDatabase()
  watch = await Watch.open(database.url)
  for (let n = 0; n < 3; n++) {
    storages.push(createKyselyStorage({ dialect: postgres({ connectionString: database.url, listen: false }) }))
  }
  await storages[0]?.migrate()
  // One that meets another one must not go unseen because it is over too soon.
  const name = new URL(database.url).pathname.slice(1)
  await watch.query(`alter database ${name} set deadlock_timeout = '50ms'`)
})

afterAll(async () => {
  for (const storage of storages.splice(0)) await storage.close()
  await watch.end()
  await database.drop()
})

async function deadlocks(): Promise<number> {
  // What a session counted is there at the latest when it has ended.
  for (const storage of storages.splice(0)) await storage.close()
  const own = 'select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
  await expect.poll(() => watch.query(own)).toEqual([])
  const [row] = await watch.query('select deadlocks from pg_stat_database where datname = current_database()')
  return Number(row?.['deadlocks'])
}

/** A commit that creates children with these keys, in this order; and which runs its steps got. */
async function createChildren(storage: KyselyStorage, run: RunRecord, keys: readonly string[]) {
  const steps = keys.map((key) => {
    return newStep({ name: key, child: newRun({ jobName: 'child', idempotencyKey: key, parentRunId: run.id }) })
  })
  const send = async () => (await storage.commit([newCommit(run, { steps })]))[0]
  let answer = await send()
  while (answer?.kept === false && answer.isBusy === true) answer = await send()
  if (answer?.kept !== true) throw new Error('The commit was not kept.')
  return new Map(keys.map((key, index) => [key, answer.children[index]]))
}

it('those who create the same runs in any order do not wait for each other', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const keys = Array.from({ length: CHILDREN }, (_, n) => `${round} ${n}`)
    const [one, other, third] = storages
    if (one === undefined || other === undefined || third === undefined) throw new Error('There are three.')
    const [first, second] = [await startRun(one), await startRun(other)]
    const list = keys.map((key) => newRun({ jobName: 'child', idempotencyKey: key }))
    const [ofOne, ofOther, ofThird] = await Promise.all([
      createChildren(one, first, keys),
      createChildren(other, second, [...keys].reverse()),
      third.enqueue([...list].reverse()),
    ])
    const found = keys.map((_, n) => ofThird[CHILDREN - 1 - n]?.run.id)
    expect(keys.map((key) => ofOne.get(key))).toEqual(found)
    expect(keys.map((key) => ofOther.get(key))).toEqual(found)
  }
  expect(await deadlocks()).toBe(0)
})
