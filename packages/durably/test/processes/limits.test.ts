import { appendFileSync } from 'node:fs'
import { setTimeout as pass } from 'node:timers/promises'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { betterSqlite3 } from '../../src/better-sqlite3'
import { declareJob, type SqlDurably } from '../../src/index'
import { postgres } from '../../src/postgres'
import { postgresPlace } from '../databases'
import { newFile, openMigrated } from '../instances'
import type { LimitedConfig } from './programs/limited'
import { patiently } from './programs/patiently'
import { type Program, usePrograms } from './programs'
import { type Sighting, readSightings } from './witness'

const WORKERS = 8
const RUNS = scaled({ quick: 80, full: 4000 })
const LEAST_KILLS = scaled({ quick: 3, full: 100 })
const KILL_EVERY_MS = 200
/** And not before so many more runs are done: on a slow machine a worker lives for less than it takes to start. */
const RUNS_BETWEEN_KILLS = 5

const CONCURRENCY = 4
const RATE = { max: 25, per: 400 }

const start = usePrograms('limited')

const PLACES: readonly { readonly name: string; readonly newPlace: () => LimitedConfig['place'] }[] = [
  { name: 'better-sqlite3', newPlace: () => ({ driver: 'better-sqlite3', file: newFile() }) },
  { name: 'postgres', newPlace: () => ({ url: postgresPlace() }) },
]

/** The database itself writes down each start: when it was by its clock, and how many runs of the job were running then. */
const AUDIT = {
  sqlite: [
    `create trigger starts_seen after update of status on durably_runs when new.status = 'running' and old.status <> 'running'
      begin insert into starts_seen select new.job_name, new.heartbeat_at, count(*) from durably_runs
        where status = 'running' and job_name = new.job_name; end`,
  ],
  postgres: [
    `create function see_start() returns trigger language plpgsql as $$ begin
      insert into starts_seen select new.job_name, cast(new.heartbeat_at as text), count(*) from durably_runs
        where status = 'running' and job_name = new.job_name;
      return null; end $$`,
    `create trigger starts_seen after update of status on durably_runs for each row
      when (new.status = 'running' and old.status <> 'running') execute function see_start()`,
  ],
}

interface Start {
  readonly jobName: string
  readonly atMs: number
  readonly running: number
}

async function installAudit({ storage }: SqlDurably, statements: readonly string[]): Promise<void> {
  const table = 'create table starts_seen (job_name text, at text, running integer)'
  for (const statement of [table, ...statements]) await sql.raw(statement).execute(storage.db)
}

async function readAudit({ storage }: SqlDurably): Promise<readonly Start[]> {
  const query = sql<{ job_name: string; at: string; running: number }>`select job_name, at, running from starts_seen`
  const { rows } = await query.execute(storage.db)
  return rows
    .map(({ job_name, at, running }) => ({ jobName: job_name, atMs: Date.parse(at), running: Number(running) }))
    .sort((a, b) => a.atMs - b.atMs)
}

/** How many runs were under way in living processes at most, as they say themselves. */
function mostAtOnce(sightings: readonly Sighting[]): number {
  const open = new Map<number, Set<string>>()
  let most = 0
  for (const { pid, runId, stepName } of sightings) {
    const own = open.get(pid) ?? new Set()
    open.set(pid, own)
    if (stepName === 'begin') own.add(runId)
    else if (stepName === 'end') own.delete(runId)
    else own.clear()
    most = Math.max(
      most,
      [...open.values()].reduce((sum, { size }) => sum + size, 0),
    )
  }
  return most
}

/** The shortest stretch in which one more began than the rate allows. */
function shortestStretch(starts: readonly Start[], max: number): number {
  return Math.min(...starts.slice(max).map(({ atMs }, index) => atMs - (starts[index]?.atMs ?? 0)))
}

describe.each(PLACES)('limits of jobs for eight workers that are killed, with $name', ({ name, newPlace }) => {
  it('are never exceeded', { timeout: LONG_PATIENCE_MS }, async () => {
    const place = newPlace()
    const dialect = 'url' in place ? postgres({ connectionString: place.url }) : betterSqlite3(place.file)
    const durably = await openMigrated(dialect)
    await installAudit(durably, 'url' in place ? AUDIT.postgres : AUDIT.sqlite)
    const input = z.object({ ms: z.number() })
    const jobs = durably.register({
      slots: declareJob({ name: 'slots', input }),
      rate: declareJob({ name: 'rate', input }),
    })
    let runs = 0
    const add = async (count: number) => {
      const inputs = Array.from({ length: count }, (_, n) => ({ payload: { ms: 5 + ((n * 7) % 30) } }))
      for (const job of [jobs.slots, jobs.rate]) await patiently(() => job.batchTrigger(inputs))
      runs += count
    }
    await add(RUNS)

    const witness = `${newFile()}.witness`
    const workers = new Map<string, Program>()
    let hired = 0
    const hire = () => {
      const workerId = `worker-${hired++}`
      const config = { place, workerId, witness, concurrency: CONCURRENCY, rateLimit: RATE } satisfies LimitedConfig
      workers.set(workerId, start('limited', config))
    }
    for (let n = 0; n < WORKERS; n++) hire()

    let [kills, doneAtKill] = [0, 0]
    for (;;) {
      await pass(KILL_EVERY_MS)
      const { completed } = await patiently(() => durably.counts())
      if (completed === 2 * runs && kills >= LEAST_KILLS) break
      // Whoever was quicker than the kills gets more to do.
      if (completed === 2 * runs) await add(RUNS / 4)
      if (completed - doneAtKill < RUNS_BETWEEN_KILLS) continue
      const [workerId = '', victim] = [...workers][Math.floor(Math.random() * workers.size)] ?? []
      victim?.signal('SIGKILL')
      await victim?.ended
      workers.delete(workerId)
      // What it had counts until here, to the witness as to the database.
      appendFileSync(witness, `${victim?.pid}\t-\tdead\n`)
      await patiently(() => durably.recover({ workerId }))
      doneAtKill = completed
      kills += 1
      hire()
    }

    expect(await durably.counts()).toMatchObject({ completed: 2 * runs, failed: 0 })
    const starts = await readAudit(durably)
    const [ofSlots, ofRate] = ['slots', 'rate'].map((job) => starts.filter(({ jobName }) => jobName === job))
    // It was reached, and not exceeded.
    expect(Math.max(...(ofSlots ?? []).map(({ running }) => running))).toBe(CONCURRENCY)
    const atOnce = mostAtOnce(readSightings(witness))
    expect(atOnce).toBeLessThanOrEqual(CONCURRENCY)
    expect(atOnce).toBeGreaterThan(1)
    const stretch = shortestStretch(ofRate ?? [], RATE.max)
    expect(stretch).toBeGreaterThanOrEqual(RATE.per)
    expect(ofRate?.length).toBeGreaterThanOrEqual(runs)
    reportSuite({
      suite: `limits under kill -9, ${name}`,
      runs: 2 * runs,
      kills,
      atOnce,
      starts: starts.length,
      stretch,
    })
  })
})
