import { setTimeout as sleep } from 'node:timers/promises'
import { createDurably, defineJob } from '@coji/durably'
import { withLogPersistence } from '@coji/durably/plugins'
import { postgres } from '@coji/durably/postgres'
import { z } from 'zod'

const STEPS = ['reserve', 'charge', 'pack', 'ship']
const STEP_MS = Number(process.env.STEP_MS ?? 500)

/** What is done for an order. Each step takes a while, so that there is time to kill who does it. */
const order = defineJob({ name: 'order', input: z.object({ item: z.string() }) }, async (ctx, { item }) => {
  for (const step of STEPS) {
    await ctx.run(step, async () => {
      console.log(`${process.title}  ${item}  ${step}`)
      await sleep(STEP_MS)
    })
  }
  return `${item} is on its way`
})

/** The same in every process. */
export async function openShop(options = {}) {
  const connectionString = process.env.DATABASE_URL
  if (connectionString === undefined) throw new Error('Where is the database? Set DATABASE_URL, or run: npm start')
  const durably = createDurably({ dialect: postgres({ connectionString }), ...options })
  durably.use(withLogPersistence())
  await durably.migrate()
  return { durably, ...durably.register({ order }) }
}
