// What a step, a trigger and a task cost on one database: `node count.mjs <driver> <file or URL>` prints JSON.
import { z } from 'zod'
import { createDurably, createKyselyStorage, createMemoryStorage } from '@coji/durably'
import { createTaskQueue } from '@coji/durably/queue'
import { countAllocated, countAsync, countStatements } from './counters.mjs'

const [driver, place] = process.argv.slice(2)

/** A server takes longer for each, and needs fewer to show. */
const MANY = driver === 'postgres' ? 300 : 600
const WARM_UP = driver === 'postgres' ? 500 : 1000
/** In memory a task leaves little to sample; in a longer backlog on a server, claims and ends fall out of step by the clock. */
const BACKLOG = driver === 'memory' ? 3000 : 1000

/** What happens by the clock is no part of it: polls, renewals, and on Postgres the notifications, twenty a second at most. */
const HOUR = 3_600_000
const NO_CLOCK = { pollingInterval: HOUR, heartbeatInterval: HOUR, staleThreshold: 4 * HOUR }

const input = z.looseObject({ n: z.number() })
const payload = (n) => ({ n, user: 'user 1', text: 'abcdefghij' })

async function openStorage() {
  if (driver === 'memory') return createMemoryStorage()
  if (driver === 'postgres') {
    const { postgres } = await import('@coji/durably/postgres')
    return createKyselyStorage({ dialect: postgres({ connectionString: place, listen: false }) })
  }
  if (driver === 'libsql') {
    const { libsql } = await import('@coji/durably/libsql')
    return createKyselyStorage({ dialect: libsql(`file:${place}`), durability: 'fast' })
  }
  const { betterSqlite3 } = await import('@coji/durably/better-sqlite3')
  return createKyselyStorage({ dialect: betterSqlite3(place), durability: 'fast' })
}

function costOfEach(counts, many) {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count / many]))
}

/**
 * To be called once for each piece of work. When it is warm, it counts what `MANY` of them cost: promises, timers and
 * statements first, then the bytes, since counters allocate. Answers what one costs, at the end.
 */
function meter() {
  let n = 0
  let stops = []
  const costs = {}
  const stopAll = () => {
    for (const stop of stops.splice(0)) Object.assign(costs, costOfEach(stop(), MANY))
  }
  return () => {
    n += 1
    if (n === WARM_UP) stops = [countAsync(), countStatements(driver)]
    if (n === WARM_UP + MANY) stopAll()
    if (n === WARM_UP + MANY) stops = [countAllocated()]
    if (n !== WARM_UP + 2 * MANY) return null
    stopAll()
    return costs
  }
}

async function costOfStep(storage) {
  const durably = createDurably({ storage, ...NO_CLOCK })
  const tick = meter()
  const costs = new Promise((resolve) => {
    const job = durably.defineJob({ name: 'steps', input }, async (ctx) => {
      for (let n = 0, cost = null; cost === null; n++) {
        await ctx.run(`step ${n}`, async () => payload(n))
        cost = tick()
        if (cost !== null) resolve(cost)
      }
    })
    void durably
      .migrate()
      .then(() => durably.start())
      .then(() => job.trigger(payload(0)))
  })
  const cost = await costs
  await durably.stop()
  return cost
}

async function costOfTrigger(storage) {
  const durably = createDurably({ storage, ...NO_CLOCK })
  const job = durably.defineJob({ name: 'triggered', input }, () => {})
  await durably.migrate()
  const tick = meter()
  for (let n = 0; ; n++) {
    await job.trigger(payload(n))
    const cost = tick()
    if (cost !== null) return cost
  }
}

/** Whole backlogs: claims and ends come in batches, and part of a backlog would have this many of them, or one more. */
async function costOfTask(storage) {
  const queue = createTaskQueue({ storage, concurrency: 16, ...NO_CLOCK })
  queue.register('task', async () => {})
  await queue.migrate()
  const drain = async (counters) => {
    const tasks = Array.from({ length: BACKLOG }, (_, n) => ({ payload: payload(n) }))
    await queue.enqueueMany('task', tasks)
    const stops = counters.map((count) => count())
    await queue.runUntilIdle()
    return stops.map((stop) => costOfEach(stop(), BACKLOG))
  }
  await drain([])
  const costs = await drain([countAsync, () => countStatements(driver)])
  return Object.assign({}, ...costs, ...(await drain([countAllocated])))
}

const storage = await openStorage()
const costs = {
  step: await costOfStep(storage),
  trigger: await costOfTrigger(storage),
  task: await costOfTask(storage),
}
process.stdout.write(JSON.stringify(costs), () => process.exit(0))
