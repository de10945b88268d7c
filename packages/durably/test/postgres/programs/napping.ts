import { defineJob } from '../../../src/index'
import { accepting } from './accepting'

export const NAP_MS = 700

/** Waits by each of the ways that need a time of the future: a timer, and the delay of a retry. */
export function napping(onBody: (runId: string, stepName: string) => void) {
  return defineJob({ name: 'napping', input: accepting<object>() }, async (ctx) => {
    await ctx.run('before', () => onBody(ctx.runId, 'before'))
    await ctx.sleep('nap', NAP_MS)
    await ctx.run('again', { retry: { maxAttempts: 2, delay: NAP_MS } }, ({ attempt }) => {
      onBody(ctx.runId, `again ${attempt}`)
      if (attempt === 1) throw new Error('not at once')
    })
  })
}
