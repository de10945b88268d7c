import { defineJob, type DurablyDatabase } from '@coji/durably'
import type { Transaction } from 'kysely'
import { z } from 'zod'
import { TAB, testify } from './witness'

/** Where the work of this tab stands still, until it is told to go on or thaws. */
export const halt = {
  /** The number of a step. */
  at: Number.NaN,
  end: () => {},
}

const goesOn = new Promise<void>((resolve) => {
  halt.end = resolve
  document.addEventListener('resume', () => resolve())
})

/** Some steps, each of them written down when its body begins. What one returns says which tab recorded it. */
export const work = defineJob(
  { name: 'work', input: z.object({ steps: z.number(), ms: z.number() }) },
  async (ctx, { steps, ms }) => {
    for (let n = 1; n <= steps; n++) {
      await ctx.run(`step ${n}`, async () => {
        testify(ctx.runId, `step ${n}`)
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
        if (n === halt.at) await goesOn
        return TAB
      })
    }
    return steps
  },
)

/** Works until somebody ends it. */
export const hold = defineJob({ name: 'hold', input: z.object({}) }, async (ctx) => {
  await ctx.run('hold', ({ signal }) => {
    testify(ctx.runId, 'hold')
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
})

/** What becomes of the long steps of this tab. */
export const lingering = {
  /** Why each of them was to end. */
  aborts: [] as string[],
  /** Lets them return. */
  end: () => {},
}

const ended = new Promise<void>((resolve) => {
  lingering.end = resolve
})

/** A long step that ends when it is told to, whatever its signal says. */
export const linger = defineJob({ name: 'linger', input: z.object({ once: z.boolean() }) }, async (ctx, { once }) => {
  await ctx.run('long', { once }, async ({ signal }) => {
    testify(ctx.runId, 'long')
    signal.addEventListener('abort', () => lingering.aborts.push(String(signal.reason)))
    await ended
    return TAB
  })
})

/** What not every tab knows. */
export const rare = (name: string) =>
  defineJob({ name, input: z.object({}) }, (ctx) =>
    ctx.run(name, () => {
      testify(ctx.runId, name)
      return TAB
    }),
  )

/** Many small transactions. */
export const rows = defineJob({ name: 'rows', input: z.object({ steps: z.number() }) }, async (ctx, { steps }) => {
  for (let n = 1; n <= steps; n++) {
    await ctx.transaction(`step ${n}`, async (trx: Transaction<DurablyDatabase>) => {
      await trx.updateTable('durably_runs').set({ tenant: '' }).where('id', '=', 'nobody').execute()
      return TAB
    })
  }
  return steps
})
