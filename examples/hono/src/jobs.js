import { defineJob } from '@coji/durably'
import { z } from 'zod'

/** Orders of more than a hundred wait for somebody to approve them. */
export const order = defineJob(
  { name: 'order', input: z.object({ item: z.string(), price: z.number() }) },
  async (ctx, { item, price }) => {
    await ctx.run('reserve', ({ log }) => log.info(`${item} is reserved`))
    if (price > 100) {
      const { approved } = await ctx.waitFor('approval', { schema: z.object({ approved: z.boolean() }) })
      if (!approved) return 'refused'
    }
    await ctx.run('ship', ({ log }) => log.info(`${item} is on its way`))
    return 'shipped'
  },
)
