import { defineJob } from '@coji/durably'
import { z } from 'zod'

/** @param {string | null} instant */
const timeOf = (instant) => (instant === null ? 'now' : instant.slice(11, 19))

/** Which report it is says the schedule, not the clock: one that comes late is still the report of its instant. */
export const report = defineJob({ name: 'report', input: z.object({}) }, async (ctx) => {
  await ctx.run('count', () => console.log(`report of ${timeOf(ctx.scheduledFor)}`))
})

export const remind = defineJob({ name: 'remind', input: z.object({ of: z.string() }) }, async (ctx, { of }) => {
  await ctx.run('tell', () => console.log(`reminder: ${of}`))
})

export const ship = defineJob(
  { name: 'ship', input: z.object({ order: z.string() }), on: { type: 'order.paid', where: { test: false } } },
  async (ctx, { order }) => {
    await ctx.run('label', () => console.log(`order ${order} is shipped`))
  },
)
