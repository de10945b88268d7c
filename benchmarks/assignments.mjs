import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDurably } from '@coji/durably'
import { betterSqlite3 } from '@coji/durably/better-sqlite3'
import { postgres } from '@coji/durably/postgres'
import { newRun } from '@coji/durably/testing'
import { createCluster } from '@coji/durably-cluster'
import { freshDatabase } from './databases.mjs'
import { startPostgres } from './postgres.mjs'

// What one leader assigns a second beside what one worker claims, from a backlog of many tenants: the storage alone, and with
// the leader of a cluster that chooses the places.

const RUNS = Number(process.argv[2] ?? 20_000)
const TENANTS = 50
const AT_ONCE = 200
const WORKERS = 10
const HOUR_MS = 3_600_000

async function fill(storage) {
  for (let done = 0; done < RUNS; done += AT_ONCE) {
    const runs = Array.from({ length: AT_ONCE }, (_, n) => newRun({ tenant: `tenant ${(done + n) % TENANTS}` }))
    await storage.enqueue(runs)
  }
}

/** Runs a second. */
async function rateOf(work) {
  const startedAt = performance.now()
  let done = 0
  for (let some = await work(); some > 0; some = await work()) done += some
  return Math.round(done / ((performance.now() - startedAt) / 1000))
}

async function measureStorage({ storage }) {
  await storage.migrate()
  await fill(storage)
  const own = { workerId: 'w', limit: AT_ONCE, leaseMs: 60_000, jobs: ['job'], holdsSuspect: false, events: [] }
  let token = 0
  const claims = await rateOf(async () => {
    token += 1
    return (await storage.claim({ ...own, claimToken: `token ${token}` })).length
  })
  await fill(storage)
  const { placement } = storage.cluster
  const lead = await storage.cluster.lead({ name: 'leader', workerId: 'l', ttlMs: HOUR_MS })
  const query = { jobs: ['job'], suspectsOf: ['job'], from: [], tenants: TENANTS, limitEach: AT_ONCE / TENANTS }
  const assignments = await rateOf(async () => {
    const { runs } = await placement.waiting(query)
    const made = await placement.assign(
      lead,
      runs.map(({ runId, version }) => ({ runId, version, workerId: 'w', takesSlot: false, events: [] })),
    )
    return made.filter((isMade) => isMade).length
  })
  const starts = await rateOf(async () => {
    token += 1
    const { runs } = await placement.assigned('w', AT_ONCE)
    const params = { workerId: 'w', runs, events: [], claimToken: `token ${token}`, leaseMs: 60_000 }
    return (await placement.start(params)).length
  })
  await storage.close()
  return { 'claims/s': claims, 'assignments/s': assignments, 'starts/s': starts }
}

/** Workers that are there and start nothing, with room for all of it. */
async function measureLeader(durably) {
  const { storage } = durably
  await storage.migrate()
  await fill(storage)
  const { placement } = storage.cluster
  for (let n = 0; n < WORKERS; n++) {
    const own = { workerId: `worker ${n}`, presence: 'active', capacity: RUNS / WORKERS, placedJobs: ['job'] }
    await placement.beat({ ...own, labels: {}, codeVersion: null, ttlMs: HOUR_MS })
  }
  const cluster = createCluster(durably)
  const placed = await rateOf(async () => (await cluster.lead()).assigned)
  await storage.close()
  return { 'placed by the leader/s': placed }
}

const folder = mkdtempSync(join(tmpdir(), 'durably-assignments-'))
const server = await startPostgres()
const rows = {}
for (const name of ['better-sqlite3 fast', 'postgres']) {
  rows[name] = {}
  for (const measure of [measureStorage, measureLeader]) {
    const { file, url } = await freshDatabase(name, { folder, postgres: server.url })
    const dialect = file === undefined ? postgres({ connectionString: url }) : betterSqlite3(file)
    const durably = createDurably({ dialect, durability: 'fast', logger: null })
    Object.assign(rows[name], await measure(durably))
  }
}
await server.end()
rmSync(folder, { recursive: true, force: true })
console.table(rows)
