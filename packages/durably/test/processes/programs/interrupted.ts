import { z } from 'zod'
import { createDurably, createMemoryStorage, systemClock, type JobContext } from '../../../src/index'
import { readConfig, tell } from './parent'

export interface InterruptedConfig {
  readonly job: keyof typeof JOBS
  readonly by: 'cancel' | 'timeout'
}

const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 2))

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
    const held = ctx.run('held', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))
    const left = branch('left')
    const right = branch('right')
    await held
    await left
    await right
  },
  async 'tidies up in between'(ctx: JobContext): Promise<void> {
    const branch = async (name: string) => ctx.waitFor(name)
    // Without it the run would be put away.
    void ctx.run('held', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))
    const left = branch('left')
    const right = branch('right')
    try {
      await left
      await right
    } finally {
      await pause()
    }
  },
}

const { job: kind, by } = readConfig<InterruptedConfig>()
// The grace of five seconds is over in a tenth of one.
const clock = { ...systemClock, schedule: (ms: number, fn: () => void) => systemClock.schedule(ms / 50, fn) }
const durably = createDurably({ storage: createMemoryStorage(), environment: { clock }, logger: null })
const limit = by === 'timeout' ? { timeout: 5000 } : {}
const job = durably.defineJob({ name: 'job', input: z.object({}), ...limit }, (ctx) => JOBS[kind](ctx))
durably.on('run:cancel', ({ requested }) => !requested && tell({ type: 'ended', as: 'cancelled' }))
durably.on('run:timeout', () => tell({ type: 'ended', as: 'timed_out' }))
durably.start()
const { id } = await job.trigger({})
await new Promise((resolve) => setTimeout(resolve, 50))
if (by === 'cancel') await durably.cancel(id)
process.stdin.once('data', () => void durably.close().then(() => process.exit()))
