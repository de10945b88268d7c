import { createDurably, defineJob, type Durably } from '@coji/durably-core'
import { createMemoryStorage, type MemoryStorage } from '@coji/durably-core/memory'
import { createFakeClock, type FakeClock } from '@coji/durably-core/testing'
import { createInbox, createScheduler, type Inbox, type Scheduler } from '../../src/index'
import { schemaOf, START } from '../stage'
import { pick, type Random, randomFrom } from './random'
import { type Mutant, watched, type Witness } from './witness'
import { wired } from './wire'

const SCHEDULES = { often: 7000, seldom: 61_000 } as const
const STEPS = 120
const FAULTS = 0.15

interface Process {
  readonly durably: Durably
  readonly schedules: Scheduler
  readonly inbox: Inbox
  kill(): void
}

interface World {
  readonly clock: FakeClock
  readonly random: Random
  readonly storage: MemoryStorage
}

/** One process; its clock may be an hour off. */
function start({ clock, random, storage }: World, faults: number): Process {
  const wire = wired({ storage, clock, random, faults })
  const offset = pick(random, [0, 0, 3_600_000, -3_600_000])
  const environment = { clock: { ...clock, now: () => clock.now() + offset }, random }
  const durably = createDurably({ storage: wire.storage, logger: null, environment })
  const input = schemaOf<unknown>()
  durably.register({
    tick: defineJob({ name: 'tick', input }, async () => {}),
    each: defineJob({ name: 'each', input, on: 'x' }, async () => {}),
    last: defineJob({ name: 'last', input, on: 'x', debounce: 20_000 }, async () => {}),
    all: defineJob({ name: 'all', input, on: 'x', batch: { max: 4, within: 30_000 } }, async () => {}),
  })
  const schedules = createScheduler(durably)
  for (const [name, every] of Object.entries(SCHEDULES)) {
    schedules.define(name, { job: 'tick', payload: null, every, missed: { all: true, max: 1000 } })
  }
  return { durably, schedules, inbox: createInbox(durably), kill: wire.kill }
}

/** What went wrong; nothing, it is to be hoped. */
export async function simulate(seed: number, mutant: Mutant | null = null): Promise<readonly string[]> {
  const random = randomFrom(seed)
  const clock = createFakeClock(START)
  const { storage, witness } = watched(createMemoryStorage({ now: () => clock.now() }), mutant)
  const world: World = { clock, random, storage }
  const processes = [start(world, FAULTS), start(world, FAULTS), start(world, FAULTS)]
  const published = new Set<number>()
  const drop = () => {}
  for (let step = 0; step < STEPS; step++) {
    const place = Math.floor(random() * processes.length)
    const one = processes[place] as Process
    const deed = random()
    if (deed < 0.35) one.schedules.tick().catch(drop)
    else if (deed < 0.7) one.inbox.drain().catch(drop)
    else if (deed < 0.85) {
      // Who does not know whether it was kept sends it again under its key.
      const key = pick(random, [step, step, step - 1])
      published.add(key)
      publish(one.durably, key).catch(drop)
    } else if (deed < 0.9) await removeRuns(storage)
    else if (deed < 0.93) {
      one.kill()
      processes[place] = start(world, FAULTS)
    }
    await clock.advance(Math.floor(random() * 5000))
  }
  for (const each of processes) each.kill()
  // What was published may not have arrived.
  const last = start(world, 0)
  await clock.advance(60_000)
  for (const key of published) await publish(last.durably, key)
  for (let round = 0; round < 4; round++) {
    await last.schedules.tick()
    await last.inbox.drain()
    await clock.advance(60_000)
  }
  return judge({ storage, witness, published })
}

function publish(durably: Durably, key: number): Promise<unknown> {
  return durably.publish({ type: 'x', payload: key, dedupeKey: String(key) })
}

/** A purge: what has fired must not come back. */
async function removeRuns(storage: MemoryStorage): Promise<void> {
  for (const { id } of await storage.getRuns({ statuses: ['pending'] })) {
    await storage.command({ kind: 'cancel', runId: id, events: { cancelled: [], requested: [] } })
  }
  await storage.purge({ statuses: ['cancelled'], limit: 10_000 })
}

interface Evidence {
  readonly storage: MemoryStorage
  readonly witness: Witness
  readonly published: ReadonlySet<number>
}

async function judge({ storage, witness, published }: Evidence): Promise<readonly string[]> {
  const wrong: string[] = []
  for (const { id, name, createdAt, firedUntil } of await storage.cluster.schedules.list({})) {
    const every = SCHEDULES[name as keyof typeof SCHEDULES]
    const expected: string[] = []
    for (let at = Date.parse(createdAt) + every; at <= Date.parse(firedUntil); at += every) {
      expected.push(new Date(at).toISOString())
    }
    const fired = [...(witness.instants.get(id) ?? [])].sort()
    if (expected.length === 0) wrong.push(`${name} never fired`)
    if (fired.join() !== expected.join()) wrong.push(`${name} fired at ${fired.join()} instead of ${expected.join()}`)
  }
  const wanted = [...published].sort((a, b) => a - b).join()
  const numbers = (job: string) =>
    (witness.payloads.get(job) ?? []).flatMap((text) => JSON.parse(text) as number | number[])
  for (const job of ['each', 'all']) {
    const got = numbers(job)
      .sort((a, b) => a - b)
      .join()
    if (got !== wanted) wrong.push(`${job} got ${got} instead of ${wanted}`)
  }
  const last = numbers('last')
  if (new Set(last).size !== last.length) wrong.push(`last got ${last.join()}`)
  if (published.size > 0 && last.length === 0) wrong.push('last got nothing')
  return wrong
}
