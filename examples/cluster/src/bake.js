import { setTimeout as pass } from 'node:timers/promises'
import { defineJob } from '@coji/durably'
import { z } from 'zod'

export const bake = defineJob(
  { name: 'bake', input: z.object({ loaf: z.number() }), placement: 'leader' },
  async (ctx) => {
    for (const step of ['knead', 'rise', 'bake']) await ctx.run(step, ({ signal }) => pass(400, undefined, { signal }))
  },
)
