import { defineJob } from '@coji/durably'
import { z } from 'zod'

/** Asks somebody, and says what they said. */
export const ask = defineJob({ name: 'ask', input: z.object({ question: z.string() }) }, async (ctx, { question }) => {
  await ctx.run('note', ({ log }) => log.info(`Somebody asks: ${question}`))
  const answer = await ctx.waitFor('answer', { schema: z.string() })
  return `${question} ${answer}`
})
