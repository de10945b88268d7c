import { describe, expect, it } from 'vitest'
import { reportSuite } from '../../../../test/report'
import { inLane, scaled } from '../../../../test/scale'
import { betterSqlite3 } from '../../src/better-sqlite3'
import { libsql } from '../../src/libsql'
import { postgres } from '../../src/postgres'
import { createTaskQueue } from '../../src/queue'
import { postgresPlace } from '../databases'
import { newFile } from '../instances'
import { type Program, usePrograms } from '../processes/programs'
import { bodyOf, readSightings, type Sighting } from '../processes/witness'
import { type QueueDriver, type QueueWorkerConfig, MORTAL } from './programs/queue-worker-config'

const TASKS = scaled({ quick: 50, full: 600 })
const WORKERS = 3
/** One worker is killed each time so many more handlers have begun. */
const KILL_EVERY = scaled({ quick: 15, full: 30 })

const start = usePrograms('queue-worker')

const ALL_PLACES = [
  { driver: 'libsql', place: () => newFile(), dialect: (place: string) => libsql(`file:${place}`) },
  { driver: 'better-sqlite3', place: () => newFile(), dialect: (place: string) => betterSqlite3(place) },
  {
    driver: 'postgres',
    place: () => postgresPlace(),
    dialect: (place: string) => postgres({ connectionString: place }),
  },
] as const satisfies readonly { driver: QueueDriver; place(): string; dialect(place: string): unknown }[]

const PLACES = inLane(ALL_PLACES, ({ driver }) => driver !== 'libsql')

/** Keeps so many workers alive, and kills the one that begins every so many-th handler, right there. */
function keepCrew(config: QueueWorkerConfig, mayKill: () => boolean) {
  let begun = 0
  const killed = new Set<number>()
  const alive = new Set<Program>()
  function hire(): void {
    const program = start('queue-worker', config)
    alive.add(program)
    program.onMessage(({ type }) => {
      if (type !== 'begun' || !alive.has(program)) return
      begun += 1
      if (begun % KILL_EVERY !== 0 || !mayKill()) return
      program.signal('SIGKILL')
      alive.delete(program)
      killed.add(program.pid)
      hire()
    })
  }
  for (let n = 0; n < WORKERS; n++) hire()
  return { killed }
}

/** Who began an attempt that somebody began once more after them. */
function begunAgain(sightings: readonly Sighting[]): readonly Sighting[] {
  const last = new Map(sightings.map((sighting) => [bodyOf(sighting), sighting]))
  return sightings.filter((sighting) => last.get(bodyOf(sighting)) !== sighting)
}

describe.each(PLACES)('workers of a queue that are killed, on $driver', ({ driver, place: newPlace, dialect }) => {
  it('lose no task, and begin no attempt of one twice that was not lost', async () => {
    const place = newPlace()
    const queue = createTaskQueue({ dialect: dialect(place), logger: null, ...MORTAL })
    queue.register('work', () => {})
    const items = Array.from({ length: TASKS }, (_, payload) => ({ payload }))
    const tasks = await queue.enqueueMany('work', items)
    const witness = newFile()
    let open = TASKS
    const crew = keepCrew({ driver, place, witness }, () => open > WORKERS * 4)
    const countOpen = async () => {
      const { queued, running, retry_scheduled } = await queue.countsByState()
      open = queued + running + retry_scheduled
      return open
    }
    await expect.poll(countOpen, { interval: 50 }).toBe(0)

    const sightings = readSightings(witness)
    const attemptsBegun = new Map<string, Set<string>>()
    for (const { runId, stepName } of sightings) {
      attemptsBegun.set(runId, (attemptsBegun.get(runId) ?? new Set()).add(stepName))
    }
    for (const { id } of tasks) {
      const task = await queue.status(id)
      expect(task?.state).toBe('succeeded')
      // Who is killed between the claim and the handler has used up an attempt as well.
      expect(attemptsBegun.get(id)?.size).toBeLessThanOrEqual(task?.attempts ?? 0)
      expect(task?.attempts).toBeLessThanOrEqual(MORTAL.retry.maxAttempts)
    }
    // An attempt begins again when it was lost beside a suspect: with a process that was killed, each time.
    expect(begunAgain(sightings).filter(({ pid }) => !crew.killed.has(pid))).toEqual([])
    expect(await queue.countsByState()).toMatchObject({ succeeded: TASKS, dead: 0 })
    const kills = crew.killed.size
    expect(kills).toBeGreaterThanOrEqual(3)
    reportSuite({ suite: `queue, kill -9, ${driver}`, tasks: TASKS, kills, begun: sightings.length })
    await queue.close()
  })
})
