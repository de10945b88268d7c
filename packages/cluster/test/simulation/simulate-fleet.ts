import { createMemoryStorage, type MemoryStorage } from '@coji/durably-core/memory'
import { createFakeClock } from '@coji/durably-core/testing'
import { START } from '../stage'
import { CONFIRM_MS, EVERY_MS, type SimProcess, startProcess } from './fleet-process'
import { type FleetWitness, witnessed } from './fleet-witness'
import { pick, randomFrom } from './random'

const PROCESSES = 5
const DEEDS = 40
const FAULTS = 0.06

export interface FleetReport {
  readonly wrong: readonly string[]
  readonly seen: FleetWitness['seen']
  readonly leaders: number
}

/** Five processes on one storage, each of which may lead; killed, paused and cut off, until the faults end. */
export async function simulateFleet(
  seed: number,
  createStorage: (now: () => number) => MemoryStorage = (now) => createMemoryStorage({ now }),
): Promise<FleetReport> {
  const random = randomFrom(seed)
  const clock = createFakeClock(START)
  const { storage, witness } = witnessed(createStorage(() => clock.now()))
  let started = 0
  const start = (faults: number): SimProcess => {
    started += 1
    return startProcess({ workerId: `w-${started}`, storage, clock, random, faults })
  }
  const processes = Array.from({ length: PROCESSES }, () => start(FAULTS))
  for (let deed = 0; deed < DEEDS; deed++) {
    const place = Math.floor(random() * PROCESSES)
    const one = processes[place] as SimProcess
    const what = random()
    if (what < 0.45) trigger(one, deed)
    else if (what < 0.55) void one.durably.publish({ type: 'x', payload: deed, dedupeKey: String(deed) }).catch(drop)
    else if (what < 0.7) one.pause()
    else if (what < 0.85) one.goOn()
    else if (what < 0.9) {
      one.kill()
      processes[place] = start(FAULTS)
    }
    await clock.advance(Math.floor(random() * 6000))
  }
  for (const one of processes) one.heal()
  // No more of them: what is there has to come to its end.
  await storage.cluster.schedules.change({ tenant: '', name: 'often', pausedBecause: 'the end', isAnew: false })
  await clock.advance(4 * CONFIRM_MS)
  const wrong = [...witness.wrong, ...(await judgeEnd(storage))]
  const lead = await storage.cluster.getLead('leader')
  for (const one of processes) one.kill()
  return { wrong: [...new Set(wrong)], seen: witness.seen, leaders: lead?.epoch ?? 0 }

  function trigger({ durably }: SimProcess, deed: number): void {
    const job = pick(random, ['placed', 'placed', 'lasting', 'plain'])
    const tenant = pick(random, ['', 'a', 'b'])
    const keyed = random() < 0.4 ? { concurrencyKey: 'k', concurrencyLimit: 2 } : {}
    void durably.trigger(job, deed, { tenant, ...keyed }).catch(drop)
  }
}

function drop(): void {}

async function judgeEnd(storage: MemoryStorage): Promise<readonly string[]> {
  const runs = await storage.getRuns({})
  const open = runs.filter(({ status }) => status !== 'completed')
  const wrong = open.map(({ id, status, jobName, assignedWorkerId }) => {
    return `run ${id} of ${jobName} is ${status} at the end (${assignedWorkerId})`
  })
  for (const { id, name, createdAt, firedUntil } of await storage.cluster.schedules.list({})) {
    const instants = runs.filter(({ scheduleId }) => scheduleId === id).map(({ scheduledFor }) => scheduledFor ?? '')
    const expected: string[] = []
    for (let at = Date.parse(createdAt) + EVERY_MS; at <= Date.parse(firedUntil); at += EVERY_MS) {
      expected.push(new Date(at).toISOString())
    }
    if (instants.sort().join() !== expected.join()) wrong.push(`${name} fired at ${instants.join()}`)
  }
  const messages = runs.filter(({ jobName, payload }) => jobName === 'placed' && /^\d+$/.test(payload ?? ''))
  const ofMessages = messages.filter(({ idempotencyKey }) => idempotencyKey !== null).map(({ payload }) => payload)
  if (new Set(ofMessages).size !== ofMessages.length) wrong.push('a message was delivered twice')
  return wrong
}
