import { setTimeout as pass } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { LONG_PATIENCE_MS } from '../../../../test/pace'
import { scaled } from '../../../../test/scale'
import { findBreaches, mostHolders } from '../processes/audit'
import { type Program, usePrograms } from '../processes/programs'
import { patiently } from '../processes/programs/patiently'
import { findRepeats, findWrongOutputs, installAudit, readAudit, readExcess } from './audit'
import { newDatabase, newWitness, observe } from './databases'
import { FIVE_STEPS, fiveSteps } from './programs/five-steps'
import type { LabourerConfig } from './programs/labourer'
import { readBodyStarts } from './witness'

const RUNS = scaled({ quick: 500, full: 20_000 })
const WORKERS = 4
const KILL_EVERY_MS = 300
/** And not before so many more runs are done: on a slow machine a worker lives for less than it takes to start. */
const RUNS_BETWEEN_KILLS = scaled({ quick: 20, full: 10 })
const LEAST_KILLS = scaled({ quick: 3, full: 60 })

const start = usePrograms('labourer')

/** Of ten runs two hold a key alone, and two share one with two others. */
function keyOf(n: number) {
  if (n % 5 === 0) return { concurrencyKey: `alone ${n % 7}`, concurrencyLimit: 1 }
  if (n % 5 === 1) return { concurrencyKey: `three ${n % 3}`, concurrencyLimit: 3 }
  return {}
}

/** Keeps so many workers alive, whatever happens to them. */
function createCrew(config: Omit<LabourerConfig, 'workerId' | 'deadWorkerIds'>) {
  const alive = new Map<string, Program>()
  /** Who has completed a run: whoever has only just begun has nothing that others could take over. */
  const working = new Set<string>()
  const messages: unknown[] = []
  let hired = 0
  let dead: readonly string[] = []

  function hire(): void {
    const workerId = `labourer-${hired++}`
    const deadWorkerIds = dead
    const program = start('labourer', { ...config, workerId, deadWorkerIds } satisfies LabourerConfig)
    alive.set(workerId, program)
    program.onMessage((message) => {
      if (message.type === 'run:fail' || message.type === 'worker:lease-lost') messages.push(message)
      if (message.type === 'run:complete') working.add(workerId)
      if (message.type === 'recovered') dead = dead.filter((id) => !deadWorkerIds.includes(id))
    })
  }
  for (let n = 0; n < WORKERS; n++) hire()
  return {
    messages,
    /** False while nobody is at work. */
    async killOne(): Promise<boolean> {
      const busy = [...alive].filter(([workerId]) => working.has(workerId))
      const [workerId, victim] = busy[Math.floor(Math.random() * busy.length)] ?? []
      if (workerId === undefined || victim === undefined) return false
      victim.signal('SIGKILL')
      await victim.ended
      alive.delete(workerId)
      dead = [...dead, workerId]
      hire()
      return true
    },
    /** Who is alive at the end ends in peace. */
    async dismiss(): Promise<void> {
      for (const program of alive.values()) program.write('stop')
      for (const program of alive.values()) expect(await program.ended).toMatchObject({ code: 0, stderr: '' })
    },
  }
}

describe('four workers on one Postgres, one of them killed all the time', () => {
  it('complete every run, record each step once and keep to the limits of keys (G4-G9, G13)', {
    timeout: LONG_PATIENCE_MS,
  }, async () => {
    const [url, witness] = [await newDatabase(), newWitness()]
    const durably = await observe(url)
    await installAudit(durably)
    const { job } = durably.register({ job: fiveSteps({ stepMs: 0, onBody: () => {} }) })
    let runs = 0
    const add = async (count: number) => {
      const numbers = Array.from({ length: count }, (_, index) => runs + index)
      await patiently(() => job.batchTrigger(numbers.map((n) => ({ payload: { n }, options: keyOf(n) }))))
      runs += count
    }
    while (runs < RUNS) await add(500)

    const startedAt = performance.now()
    const lease = { staleThreshold: 300_000, heartbeatInterval: 5000 }
    const crew = createCrew({ url, witness, concurrency: 8, stepMs: 2, skewMs: 0, lease })
    let [kills, doneAtKill] = [0, 0]
    for (;;) {
      await pass(KILL_EVERY_MS)
      const { completed } = await patiently(() => durably.counts())
      if (completed === runs && kills >= LEAST_KILLS) break
      // Whoever was quicker than the kills gets more to do.
      if (completed === runs) await add(100)
      if (completed - doneAtKill < RUNS_BETWEEN_KILLS || !(await crew.killOne())) continue
      doneAtKill = completed
      kills += 1
    }
    const runsPerSecond = Math.round((runs * 1000) / (performance.now() - startedAt))
    await crew.dismiss()

    expect(crew.messages).toEqual([])
    expect(await durably.counts()).toMatchObject({ completed: runs, failed: 0, pending: 0, running: 0 })
    expect(await findWrongOutputs(durably)).toEqual([])
    const writes = await readAudit(durably)
    const starts = readBodyStarts(witness)
    expect(findBreaches(writes)).toEqual([])
    expect(findRepeats(writes, starts)).toEqual([])
    expect(await readExcess(durably)).toEqual([])
    expect(starts.filter(({ epoch }) => epoch < 1)).toEqual([])

    // It saw everything, and there was something to see.
    const records = writes.filter(({ stepStatus }) => stepStatus === 'completed')
    expect(records.length).toBe(runs * FIVE_STEPS.length)
    for (let n = 0; n < 7; n++) expect(mostHolders(writes, `alone ${n}`)).toBe(1)
    // How many meet is a matter of chance; that some do, and never more than may, is not.
    const most = [0, 1, 2].map((n) => mostHolders(writes, `three ${n}`))
    expect(Math.max(...most)).toBeLessThanOrEqual(3)
    expect(Math.max(...most)).toBeGreaterThan(1)
    const repeatedBodies = starts.length - records.length
    expect(repeatedBodies).toBeGreaterThan(0)
    const takenOver = new Set(writes.filter(({ epoch }) => epoch > 1).map(({ runId }) => runId)).size
    expect(takenOver).toBeGreaterThan(kills / 2)
    reportSuite({ suite: 'soak on Postgres', runs, kills, takenOver, repeatedBodies, runsPerSecond })
  })
})
