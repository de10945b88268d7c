import { createDurably, defineJob } from '@coji/durably-core'
import { createKyselyStorage, type KyselyStorage } from '@coji/durably-storage-kysely'
import type { Dialect } from 'kysely'
import { onTestFinished } from 'vitest'
import { createCluster, createInbox, createScheduler, type Inbox } from '../src/index'
import { schemaOf } from './stage'

export const STEPS = ['a', 'b', 'c'] as const
export const LANES = 4
/** Stays in its last step while the backup is taken. */
export const LASTING = 0
const EVERY_MS = 200
const POLL_MS = 20

type Body = (step: string, n: number) => void | Promise<void>

/** A process on a database, before it is started. */
function openProcess(dialect: Dialect, workerId: string, body: Body) {
  const storage = createKyselyStorage({ dialect })
  const durably = createDurably({ storage, logger: null, workerId, concurrency: 2 * LANES, pollingInterval: POLL_MS })
  const job = defineJob({ name: 'job', input: schemaOf<number>(), placement: 'leader' }, async (ctx, n) => {
    for (const step of STEPS) await ctx.run(step, () => body(step, n))
  })
  const tick = defineJob({ name: 'tick', input: schemaOf<null>() }, async () => {})
  const told = defineJob({ name: 'told', input: schemaOf<string>(), on: 'told' }, async () => {})
  const { job: handle } = durably.register({ job, tick, told })
  onTestFinished(() => durably.close())
  return { storage, durably, handle }
}

/** One that leads, works, and fires a schedule. */
export function openWorld(dialect: Dialect, workerId: string, body: Body) {
  const world = openProcess(dialect, workerId, body)
  createCluster(world.durably, { pollingInterval: POLL_MS, lease: 900, reassignAfter: 100 })
  const schedules = createScheduler(world.durably, { pollingInterval: POLL_MS })
  schedules.define('often', { job: 'tick', payload: null, every: EVERY_MS, missed: { all: true, max: 1000 } })
  return world
}

export type World = ReturnType<typeof openWorld>

/** One that delivers messages when it is told to. */
export function openCourier(dialect: Dialect): Inbox {
  return createInbox(openProcess(dialect, 'courier', () => {}).durably)
}

/** Keeps so many runs under way; what it returns ends that. */
export function load({ handle }: World): { readonly done: () => number; end(): Promise<unknown> } {
  let isOn = true
  let last = LASTING
  let done = 0
  const lanes = Array.from({ length: LANES }, async () => {
    for (; isOn; done++) await handle.triggerAndWait(++last)
  })
  const end = () => {
    isOn = false
    return Promise.all(lanes)
  }
  return { done: () => done, end }
}

export function publish({ durably }: World, payload: string) {
  return durably.publish({ type: 'told', payload, dedupeKey: payload })
}

/** Messages for which there is a run, so often as there is one. */
export async function deliveries(storage: KyselyStorage): Promise<readonly unknown[]> {
  const runs = await storage.getRuns({ jobNames: ['told'] })
  return runs.map(({ payload }) => JSON.parse(payload ?? 'null') as unknown).sort()
}

/** Of the schedule, the earliest first. */
export async function firedInstants(storage: KyselyStorage): Promise<readonly number[]> {
  const runs = await storage.getRuns({ jobNames: ['tick'] })
  return runs.map(({ scheduledFor }) => Date.parse(scheduledFor ?? '')).sort((a, b) => a - b)
}

/** So many from the first one on, without a gap. */
export async function instantsWithoutGap(storage: KyselyStorage, count: number): Promise<readonly number[]> {
  const [schedule] = await storage.cluster.schedules.list({})
  const first = Date.parse(schedule?.createdAt ?? '') + EVERY_MS
  return Array.from({ length: count }, (_, index) => first + index * EVERY_MS)
}

/** A promise, and what resolves it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}
