import { createDurably, defineJob } from '@coji/durably-core'
import { createMemoryStorage, type MemoryStorage } from '@coji/durably-core/memory'
import { createFakeClock } from '@coji/durably-core/testing'
import { schemaOf, START } from '../stage'
import { CONFIRM_MS, EVERY_MS, type SimProcess, startProcess } from './fleet-process'
import { assignAnything, strike } from './fleet-impostor'
import { Forger } from './fleet-forger'
import { type FleetWitness, witnessed } from './fleet-witness'
import { pick, randomFrom } from './random'

const PROCESSES = 5
const DEEDS = 40
const FAULTS = 0.06
const STRIKES = 0.4
/** Longer than it takes until any worker may do what the leader does. */
const BLACKOUT_MS = 45_000
const LEFT_ALONE = 3

export interface FleetReport {
  readonly wrong: readonly string[]
  readonly seen: FleetWitness['seen']
  readonly leaders: number
  readonly continued: number
}

/** Five processes on one storage, each of which may lead; killed, paused and cut off, until the faults end, or something is wrong. */
export async function simulateFleet(
  seed: number,
  createStorage: (now: () => number) => MemoryStorage = (now) => createMemoryStorage({ now }),
): Promise<FleetReport> {
  const random = randomFrom(seed)
  const clock = createFakeClock(START)
  const { storage, witness } = witnessed(
    createStorage(() => clock.now()),
    () => clock.now(),
  )
  let started = 0
  const start = (faults: number): SimProcess => {
    started += 1
    return startProcess({ workerId: `w-${started}`, storage, clock, random, faults })
  }
  const client = createDurably({ storage, logger: null, environment: { clock, random } })
  client.register({ placed: defineJob({ name: 'placed', input: schemaOf<unknown>() }, () => {}) })
  const published = new Set<string>()
  const processes = Array.from({ length: PROCESSES }, () => start(FAULTS))
  // Of its own, so that what it does changes nothing of what the others do.
  const impostor = randomFrom(-seed)
  const forger = new Forger(storage, randomFrom(-seed))
  const strikeAll = async () => {
    await strike(storage, impostor)
    await forger.strike()
  }
  for (let deed = 0; deed < DEEDS && witness.wrong.length === 0; deed++) {
    if (deed === DEEDS / 2) await blackout()
    if (impostor() < STRIKES) await strikeAll()
    const place = Math.floor(random() * PROCESSES)
    const one = processes[place] as SimProcess
    const what = random()
    if (what < 0.45) trigger(one, deed)
    else if (what < 0.55) publish(one, deed)
    else if (what < 0.7) one.pause()
    else if (what < 0.85) one.goOn()
    else if (what < 0.9) {
      one.kill()
      processes[place] = start(FAULTS)
    }
    await clock.advance(Math.floor(random() * 6000))
  }
  if (witness.wrong.length > 0) {
    for (const one of processes) one.kill()
    return { wrong: [...new Set(witness.wrong)], seen: witness.seen, leaders: 0, continued: 0 }
  }
  for (const one of processes) one.heal()
  // No more of them: what is there has to come to its end.
  await storage.cluster.schedules.change({ tenant: '', name: 'often', pausedBecause: 'the end', isAnew: false })
  await clock.advance(4 * CONFIRM_MS)
  const wrong = [...witness.wrong, ...(await judgeEnd(storage, published))]
  const lead = await storage.cluster.getLead('leader')
  for (const one of processes) one.kill()
  return { wrong: [...new Set(wrong)], seen: witness.seen, leaders: lead?.epoch ?? 0, continued: witness.continued }

  /** Nobody leads, and nobody does anything for the runs that were assigned. */
  async function blackout(): Promise<void> {
    for (const one of processes) one.pause()
    for (let n = 0; n < LEFT_ALONE; n++) await client.trigger('placed', `left alone ${n}`)
    await clock.advance(BLACKOUT_MS)
    await assignAnything(storage)
    await strikeAll()
    for (const one of processes) one.goOn()
  }

  /** Only what was answered has to arrive. */
  function publish({ durably }: SimProcess, deed: number): void {
    const answer = durably.publish({ type: 'x', payload: deed, dedupeKey: String(deed) })
    void answer.then(() => published.add(String(deed))).catch(drop)
  }

  function trigger({ durably }: SimProcess, deed: number): void {
    const job = pick(random, ['placed', 'placed', 'lasting', 'plain'])
    const tenant = pick(random, ['', '', 'a', 'b'])
    const keyed = pick(random, [{}, { concurrencyKey: 'two', concurrencyLimit: 2 }, { concurrencyKey: 'one' }])
    void durably.trigger(job, deed, { tenant, ...keyed }).catch(drop)
  }
}

function drop(): void {}

async function judgeEnd(storage: MemoryStorage, published: ReadonlySet<string>): Promise<readonly string[]> {
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
  const lost = [...published].filter((payload) => !ofMessages.includes(payload))
  if (lost.length > 0) wrong.push(`the messages ${lost.join()} were never delivered`)
  return wrong
}
