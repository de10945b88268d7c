import { z } from 'zod'
import { createDurably, createMemoryStorage, systemClock, type JobContext, type Storage } from '../../../src/index'
import { readConfig, tell } from './parent'

export interface InterruptedConfig {
  readonly job: keyof typeof JOBS
  readonly by: 'cancel' | 'timeout' | 'lost lease' | 'stop'
}

const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 2))

/** A body that lets go when it is told to. Without one the run would be put away. */
const held = (ctx: JobContext) =>
  ctx.run('held', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))

const JOBS = {
  async 'catches for ever'(ctx: JobContext): Promise<void> {
    for (let n = 0; ; n++) {
      try {
        await ctx.run(`step ${n}`, pause)
      } catch {}
    }
  },
  async 'calls one name for ever'(ctx: JobContext): Promise<void> {
    for (;;) {
      try {
        await ctx.run('poll', pause)
      } catch {}
    }
  },
  async 'awaits one after the other'(ctx: JobContext): Promise<void> {
    const branch = async (name: string) => ctx.waitFor(name)
    const first = held(ctx)
    const left = branch('left')
    const right = branch('right')
    await first
    await left
    await right
  },
  async 'tidies up in between'(ctx: JobContext): Promise<void> {
    const branch = async (name: string) => ctx.waitFor(name)
    void held(ctx)
    const left = branch('left')
    const right = branch('right')
    try {
      await left
      await right
    } finally {
      await pause()
    }
  },
  async 'does not listen to its branches'(ctx: JobContext): Promise<void> {
    const branch = async () => void (await held(ctx))
    const wrapping = async () => {
      await ctx.waitFor('wrapped').catch((cause) => {
        throw new Error('A branch failed.', { cause })
      })
    }
    const listening = async () => {
      const { signal } = ctx
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }
    const branches = [branch(), wrapping(), listening(), Promise.any([ctx.waitFor('any')])]
    for (let n = 0; n < 20; n++) await pause()
    await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
    for (let n = 0; n < 20; n++) await pause()
    await Promise.all(branches)
  },
}

const { job: kind, by } = readConfig<InterruptedConfig>()
// The grace of five seconds is over in a tenth of one.
const clock = { ...systemClock, schedule: (ms: number, fn: () => void) => systemClock.schedule(ms / 50, fn) }
const memory = createMemoryStorage()
const storage: Storage = {
  ...memory,
  async renew(leases, leaseMs) {
    return by === 'lost lease' ? leases.map(() => ({ kept: false })) : memory.renew(leases, leaseMs)
  },
}
const durably = createDurably({ storage, environment: { clock }, logger: null })
const limit = by === 'timeout' ? { timeout: 5000 } : {}
const job = durably.defineJob({ name: 'job', input: z.object({}), ...limit }, (ctx) => JOBS[kind](ctx))
durably.on('run:cancel', ({ requested }) => !requested && tell({ type: 'ended', as: 'cancelled' }))
durably.on('run:timeout', () => tell({ type: 'ended', as: 'timed_out' }))
durably.on('run:release', () => tell({ type: 'ended', as: 'released' }))
durably.on('worker:lease-lost', () => void durably.stop().then(() => tell({ type: 'ended', as: 'lost' })))
durably.start()
const { id } = await job.trigger({})
await new Promise((resolve) => setTimeout(resolve, 50))
if (by === 'cancel') await durably.cancel(id)
if (by === 'stop') void durably.stop({ timeout: 0 })
process.stdin.once('data', (line) => {
  if (String(line).startsWith('reject')) void Promise.reject(new Error('Not of the job.'))
  else void durably.close().then(() => process.exit())
})
