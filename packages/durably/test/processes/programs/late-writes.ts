import { z } from 'zod'
import { defineJob, type JobContext } from '../../../src/index'

/** Stops where a process can be late; true when it was. */
type Pause = (runId: string) => boolean | Promise<boolean>

/** What a job can have in hand at the moment its process is stopped, by what it tries to write when it goes on. */
const WORK = {
  step: (ctx, pause) => ctx.run('held', async () => ((await pause(ctx.runId)) ? 'late' : 'in time')),
  checkpoint: (ctx, pause) =>
    ctx.run('held', async (step) => {
      if (await pause(ctx.runId)) await step.save('late')
      return 'in time'
    }),
  'failed step': (ctx, pause) =>
    ctx.run('held', async () => {
      if (await pause(ctx.runId)) throw new Error('late')
      return 'in time'
    }),
  'progress, log and event': async (ctx, pause) => {
    if (!(await pause(ctx.runId))) return 'in time'
    ctx.progress(99, 100, 'late')
    ctx.log.error('late')
    await aborted(ctx.signal)
    return 'late'
  },
  result: async (ctx, pause) => ((await pause(ctx.runId)) ? 'late' : 'in time'),
  error: async (ctx, pause) => {
    if (await pause(ctx.runId)) throw new Error('late')
    return 'in time'
  },
} as const satisfies Record<string, (ctx: JobContext, pause: Pause) => Promise<string>>

export type LateWrite = keyof typeof WORK

export const LATE_WRITES = Object.keys(WORK) as LateWrite[]

export function lateWrite(kind: LateWrite, pause: Pause) {
  return defineJob({ name: `late ${kind}`, input: z.object({}) }, async (ctx) => {
    ctx.log.info('begun')
    const value = await ctx.run('before', () => ctx.runId)
    const result = await WORK[kind](ctx, pause)
    return { value, result }
  })
}

/** What a process that was late takes next. */
export function followUp(kind: LateWrite) {
  return defineJob({ name: `after ${kind}`, input: z.object({}) }, (ctx) => ctx.run('only', () => kind))
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
