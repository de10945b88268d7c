import { createDurably, defineJob, type Durably } from '@coji/durably-core'
import { createMemoryStorage, type MemoryStorage } from '@coji/durably-core/memory'
import { createFakeClock, type FakeClock } from '@coji/durably-core/testing'
import { createInbox, createScheduler, type Inbox, type Scheduler } from '../../src/index'
import { schemaOf, START } from '../stage'
import { WITHIN_MS } from './batch-witness'
import { judge, SCHEDULES, type Sent } from './judge'
import type { Mutant } from './mutants'
import { pick, type Random, randomFrom } from './random'
import { watched } from './witness'
import { wired } from './wire'

/** Somebody changes it beside its instants. */
const OFTEN = { tenant: '', name: 'often' } as const
const STEPS = 120
const FAULTS = 0.15
const DEBOUNCE = { wait: 6000, maxWait: 15_000 } as const

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

const input = schemaOf<unknown>()

/** One process; its clock may be an hour off. */
function start({ clock, random, storage }: World, faults: number): Process {
  const wire = wired({ storage, clock, random, faults })
  const offset = pick(random, [0, 0, 3_600_000, -3_600_000])
  const environment = { clock: { ...clock, now: () => clock.now() + offset }, random }
  const durably = createDurably({ storage: wire.storage, logger: null, environment })
  durably.register({
    tick: defineJob({ name: 'tick', input }, async () => {}),
    each: defineJob({ name: 'each', input, on: 'x' }, async () => {}),
    last: defineJob({ name: 'last', input, on: 'x', debounce: 20_000 }, async () => {}),
    all: defineJob({ name: 'all', input, on: 'x', batch: { max: 4, within: 30_000 } }, async () => {}),
    save: defineJob({ name: 'save', input }, async () => {}),
    list: defineJob({ name: 'list', input }, async () => {}),
  })
  const schedules = createScheduler(durably)
  for (const [name, every] of Object.entries(SCHEDULES)) {
    const overlap = name === 'alone' ? 'cancel' : 'allow'
    schedules.define(name, { job: 'tick', payload: null, every, overlap, missed: { all: true, max: 1000 } })
  }
  return { durably, schedules, inbox: createInbox(durably), kill: wire.kill }
}

/** Begins what was triggered, and nothing else; answers the payloads in the order in which it began them. */
function startWorker({ storage, clock, random }: World) {
  const begun = { save: [] as string[], list: [] as string[] }
  const durably = createDurably({ storage, logger: null, environment: { clock, random } })
  durably.register({
    save: defineJob({ name: 'save', input }, (_ctx, payload) => void begun.save.push(JSON.stringify(payload))),
    list: defineJob({ name: 'list', input }, (_ctx, payload) => void begun.list.push(JSON.stringify(payload))),
  })
  return { begun, work: () => durably.runUntilIdle() }
}

/** What went wrong; nothing, it is to be hoped. */
export async function simulate(seed: number, mutant: Mutant = (storage) => storage): Promise<readonly string[]> {
  const random = randomFrom(seed)
  const clock = createFakeClock(START)
  const now = () => clock.now()
  const { storage, witness } = watched(mutant(createMemoryStorage({ now })), now)
  const world: World = { clock, random, storage }
  const processes = [start(world, FAULTS), start(world, FAULTS), start(world, FAULTS)]
  const worker = startWorker(world)
  const sent: Sent = { keyed: new Set(), unkeyed: new Set(), listed: new Set() }
  for (let step = 0; step < STEPS; step++) {
    const place = Math.floor(random() * processes.length)
    const one = processes[place] as Process
    const deed = random()
    if (deed < 0.25) one.schedules.tick().catch(drop)
    else if (deed < 0.5) one.inbox.drain().catch(drop)
    else if (deed < 0.65) send(one, { step, random, sent })
    else if (deed < 0.75) {
      trigger(one.durably, step, random).catch(drop)
      list(one.durably, { step, random, sent })
    } else if (deed < 0.8) await worker.work()
    else if (deed < 0.83) one.schedules.backfill('often', lastMinute(clock)).catch(drop)
    else if (deed < 0.85) one.inbox.replay(lastMinute(clock, 'before')).catch(drop)
    else if (deed < 0.87) await storage.cluster.schedules.change({ ...OFTEN, isAnew: false })
    else if (deed < 0.91) await removeRuns(storage)
    else if (deed < 0.94) {
      one.kill()
      processes[place] = start(world, FAULTS)
    }
    await clock.advance(Math.floor(random() * 5000))
  }
  for (const each of processes) each.kill()
  // What was published may not have arrived.
  const last = start(world, 0)
  await clock.advance(60_000)
  for (const key of sent.keyed) await publish(last.durably, key)
  for (let round = 0; round < 4; round++) {
    await last.schedules.tick()
    await last.inbox.drain()
    await worker.work()
    await clock.advance(60_000)
  }
  return judge({ storage, witness, sent, begun: worker.begun })
}

interface Sending {
  readonly step: number
  readonly random: Random
  readonly sent: Sent
}

function send({ durably }: Process, { step, random, sent }: Sending): void {
  if (random() < 0.3) {
    const number = 1000 + step
    const publishing = durably.publish({ type: 'x', payload: number })
    publishing.then(() => sent.unkeyed.add(number)).catch(drop)
    return
  }
  // Who does not know whether it was kept sends it again under its key.
  const key = pick(random, [step, step, step - 1])
  sent.keyed.add(key)
  publish(durably, key).catch(drop)
}

function publish(durably: Durably, key: number): Promise<unknown> {
  return durably.publish({ type: 'x', payload: key, dedupeKey: String(key) })
}

function trigger(durably: Durably, step: number, random: Random): Promise<unknown> {
  const key = pick(random, ['a', 'b'])
  return durably.trigger('save', { key, step }, { debounce: { ...DEBOUNCE, key } })
}

/** Some entries are long. */
function list(durably: Durably, { step, random, sent }: Sending): void {
  const key = pick(random, ['a', 'b'])
  const length = pick(random, [1, 1, 2, 3, 4])
  const entries = Array.from({ length }, (_, n) => `${step}-${n}`.padEnd(pick(random, [0, 0, 30])))
  const batch = { max: 4, within: WITHIN_MS, key }
  const triggering = durably.trigger('list', entries, { batch })
  const heard = () => {
    for (const entry of entries) sent.listed.add(entry)
  }
  triggering.then(heard).catch(drop)
}

function lastMinute(clock: FakeClock): { from: Date; to: Date }
function lastMinute(clock: FakeClock, end: 'before'): { from: Date; before: Date }
function lastMinute(clock: FakeClock, end: 'to' | 'before' = 'to') {
  return { from: new Date(clock.now() - 60_000), [end]: new Date(clock.now()) }
}

/** A purge: what has fired must not come back. */
async function removeRuns(storage: MemoryStorage): Promise<void> {
  for (const { id } of await storage.getRuns({ statuses: ['pending'], jobNames: ['tick', 'each', 'last', 'all'] })) {
    await storage.command({ kind: 'cancel', runId: id, events: { cancelled: [], requested: [] } })
  }
  await storage.purge({ statuses: ['cancelled'], limit: 10_000 })
}

function drop(): void {}
