import { pbkdf2Sync } from 'node:crypto'
import { z } from 'zod'
import { defineJob } from '../../../src/index'

export const STEPS = 40

/** Forty steps, each made from the result of the one before: one that is lost, doubled or mixed up changes the output. */
export function fortySteps(onBody: (runId: string, stepName: string) => void) {
  return defineJob({ name: 'forty-steps', input: z.object({ seed: z.string() }) }, async (ctx, { seed }) => {
    const trail: string[] = []
    let value = seed
    for (let n = 0; n < STEPS; n++) {
      const name = `step-${n}`
      value = await ctx.run(name, () => {
        onBody(ctx.runId, name)
        return digest(value)
      })
      trail.push(value)
    }
    return { trail }
  })
}

/** Work for about a millisecond, so that a process can die in the middle of it. */
function digest(value: string): string {
  return pbkdf2Sync(value, 'durably', 1500, 16, 'sha256').toString('hex')
}
