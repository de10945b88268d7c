import { describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { scaled } from '../../../../test/scale'
import { betterSqlite3 } from '../../src/better-sqlite3'
import { postgres } from '../../src/postgres'
import { postgresPlace } from '../databases'
import { newFile, openMigrated } from '../instances'
import { DRIVERS } from './programs/drivers'
import type { PoisonedConfig } from './programs/poisoned'
import { usePrograms, type Program } from './programs'
import { z } from 'zod'

const WORKERS = scaled({ quick: 3, full: 8 })
const SLOTS = scaled({ quick: 20, full: 50 })
const KILLS = scaled({ quick: 6, full: 120 })
const RUNS = scaled({ quick: 60, full: 3000 })
/** Each of them costs twice the pause of the one before. */
const MAX_CRASHES = scaled({ quick: 3, full: 5 })
const KILL_EVERY_MS = 300

const start = usePrograms('poisoned', 'crowded')

type Place = PoisonedConfig['place']

const PLACES: readonly { readonly name: string; readonly place: () => Place }[] = [
  ...DRIVERS.map((driver) => ({ name: driver, place: () => ({ driver, file: newFile() }) })),
  { name: 'postgres', place: () => ({ url: postgresPlace() }) },
]

async function observe(place: Place) {
  const dialect = 'url' in place ? postgres({ connectionString: place.url }) : betterSqlite3(place.file)
  const durably = await openMigrated(dialect)
  const job = durably.defineJob({ name: 'job', input: z.object({ isPoison: z.boolean() }) }, () => {})
  const trigger = (count: number, isPoison: boolean) =>
    job.batchTrigger(Array.from({ length: count }, () => ({ payload: { isPoison } })))
  return { durably, job, trigger }
}

describe.each(PLACES)('a run that ends its process, with $name', ({ place: newPlace }) => {
  it('fails alone: those beside it complete', { timeout: 120_000 }, async () => {
    const place = newPlace()
    const { job, trigger } = await observe(place)
    const [poison] = await trigger(1, true)
    await trigger(9, false)
    const terms = { concurrency: 10, maxCrashes: MAX_CRASHES, stepMs: 200 }
    let deaths = 0
    for (let deadWorkerIds: readonly string[] = []; ; deadWorkerIds = [`worker-${deaths}`]) {
      const workerId = `worker-${deaths + 1}`
      const program = start('poisoned', { ...terms, place, workerId, deadWorkerIds })
      const { code } = await program.ended
      if (code === 0) break
      deaths += 1
      expect(deaths).toBeLessThanOrEqual(MAX_CRASHES)
    }
    const runs = await job.getRuns()
    const failed = runs.filter(({ status }) => status !== 'completed')
    expect(failed).toMatchObject([{ id: poison?.id, status: 'failed', errorDetail: { code: 'crash_limit' } }])
    expect(deaths).toBe(MAX_CRASHES)
  })
})

/** Fewer than the runs: together they are more than a process gets through before it is killed. */
const CROWD = 3
/** Longer than the pauses of runs that were lost together differ, so that they would meet again. */
const HEAVY_MS = 1500

describe.each(PLACES)(
  'runs that end their process by being too many at once, with $name',
  ({ name, place: newPlace }) => {
    it('go on one at a time after the second loss, and none fails', { timeout: 120_000 }, async () => {
      const place = newPlace()
      const { durably, trigger } = await observe(place)
      await trigger(CROWD + 1, false)
      const terms = { concurrency: 10, maxCrashes: 3, stepMs: HEAVY_MS, crowd: CROWD }
      let kills = 0
      for (let deadWorkerIds: readonly string[] = []; ; deadWorkerIds = [`worker-${kills}`]) {
        const workerId = `worker-${kills + 1}`
        const program = start('crowded', { ...terms, place, workerId, deadWorkerIds })
        const { code } = await program.ended
        if (code === 0) break
        kills += 1
      }
      expect(await durably.counts()).toMatchObject({ completed: CROWD + 1, failed: 0 })
      expect(kills).toBe(2)
      reportSuite({ suite: `kill -9 of crowded processes, ${name}`, runs: CROWD + 1, kills, failed: 0 })
    })
  },
)

describe.each(PLACES)(
  'processes with many slots that are killed again and again, with $name',
  ({ name, place: newPlace }) => {
    it('fail no run', { timeout: scaled({ quick: 120_000, full: 600_000 }) }, async () => {
      const place = newPlace()
      const { durably, trigger } = await observe(place)
      await trigger(RUNS, false)
      const terms = { concurrency: SLOTS, maxCrashes: 5, stepMs: 20 }
      let hired = 0
      let dead: readonly string[] = []
      const workers: { readonly workerId: string; readonly program: Program }[] = []
      const hire = () => {
        hired += 1
        const workerId = `worker-${hired}`
        const deadWorkerIds = dead
        const program = start('poisoned', { ...terms, place, workerId, deadWorkerIds })
        program.onMessage(({ type }) => {
          if (type === 'recovered') dead = dead.filter((id) => !deadWorkerIds.includes(id))
        })
        workers.push({ workerId, program })
      }
      for (let n = 0; n < WORKERS; n++) hire()
      for (let kill = 0; kill < KILLS; kill++) {
        await new Promise((resolve) => setTimeout(resolve, KILL_EVERY_MS))
        const [oldest] = workers.splice(0, 1)
        oldest?.program.signal('SIGKILL')
        await oldest?.program.ended
        if (oldest !== undefined) dead = [...dead, oldest.workerId]
        hire()
      }
      // Whoever died before it could recover the others has left them.
      await Promise.all(workers.map(({ program }) => program.next('recovered')))
      for (const workerId of dead) await durably.recover({ workerId })
      for (const { program } of workers) expect(await program.ended).toMatchObject({ code: 0, stderr: '' })
      expect(await durably.counts()).toMatchObject({ completed: RUNS, failed: 0 })
      reportSuite({ suite: `kill -9 with many slots, ${name}`, runs: RUNS, kills: KILLS, workers: hired })
    })
  },
)
