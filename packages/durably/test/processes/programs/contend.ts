import { z } from 'zod'
import { defineJob, type JobContext } from '../../../src/index'

const INPUT = z.object({ n: z.number(), fails: z.boolean() })

export interface Contending {
  /** Called when a body begins. */
  readonly onBody: (ctx: JobContext, stepName: string) => Promise<void>
}

/** What some runs fail with at first; by hand they are sent back to the queue, where either process can get them. */
export const FIRST_FAILURE = 'not at the first attempt'

/** Two steps with a commit between them, so that runs of both processes really overlap. */
export function contend({ onBody }: Contending) {
  return defineJob({ name: 'contend', input: INPUT }, async (ctx, { n, fails }) => {
    await ctx.run('enter', () => onBody(ctx, 'enter'))
    await ctx.run('leave', () => onBody(ctx, 'leave'))
    if (fails && ctx.attempt === 1) throw new Error(FIRST_FAILURE)
    return { n }
  })
}
