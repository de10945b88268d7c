/** An application at work, as the commands find it: it says which runs there are, and then never rests. */
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { createDurably, defineJob, type DurablyDialect } from '@coji/durably'
import { withLogPersistence } from '@coji/durably/plugins'
import { z } from 'zod'

const sum = defineJob({ name: 'sum', input: z.object({ numbers: z.array(z.number()) }) }, async (ctx, { numbers }) => {
  const total = await ctx.run('add', () => numbers.reduce((one, other) => one + other, 0))
  await ctx.run('tell', ({ log }) => log.info('the sum', { total }))
  return total
})

const charge = defineJob({ name: 'charge', input: z.object({ order: z.string() }) }, async (ctx, { order }) => {
  await ctx.run('reserve', () => `room for ${order}`)
  await ctx.run('pay', ({ log }) => {
    log.warn('the bank hesitates', { order })
    throw Object.assign(new Error(`The card of order ${order} was refused`), { code: 'E_CARD' })
  })
})

const talk = defineJob({ name: 'talk', input: z.object({}) }, async (ctx) => {
  await ctx.run('greet', ({ log }) => log.info('hello'))
  const word = await ctx.waitFor('word', { schema: z.string() })
  await ctx.run('answer', ({ log }) => log.info(`you said ${word}`))
})

async function dialectOf(address: string): Promise<DurablyDialect> {
  if (address.startsWith('postgres')) {
    return (await import('@coji/durably/postgres')).postgres({ connectionString: address })
  }
  return (await import('@coji/durably/better-sqlite3')).betterSqlite3(address)
}

const [address = ''] = process.argv.slice(2)
const durably = createDurably({
  dialect: await dialectOf(address),
  concurrency: 2,
  workerId: 'shop-1',
  pollingInterval: 100,
})
durably.use(withLogPersistence())
const jobs = durably.register({ sum, charge, talk })
const errors: unknown[] = []
durably.on('worker:error', ({ error }) => errors.push(error))
await durably.migrate()

const tenant = 'acme'
const done = await jobs.sum.trigger({ numbers: [1, 2, 3] }, { labels: { team: 'red' } })
const refused = await jobs.charge.batchTrigger(
  ['17', '18', '19'].map((order) => ({ payload: { order }, options: { tenant } })),
)
const talking = await jobs.talk.trigger({})
const late = await jobs.sum.trigger({ numbers: [] }, { delay: 86_400_000 })
const unknown = await durably.trigger('nobody-knows-me', {})
const talks = new Promise<void>((resolve) => {
  durably.on('run:suspend', ({ jobName }) => {
    if (jobName === 'talk') resolve()
  })
})
durably.start()
await jobs.sum.wait(done.id)
for (const { id } of refused) await jobs.charge.wait(id).catch(() => {})
// Whoever looks finds it waiting.
await talks
const ids = {
  ...{ done: done.id, refused: refused.map(({ id }) => id), talking: talking.id, late: late.id, unknown: unknown.id },
}
process.stdout.write(`${JSON.stringify(ids)}\n`)

let isOver = false
let worked = 0
createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'stop') isOver = true
  else void durably.signal(talking.id, 'word', line)
})
while (!isOver) {
  await jobs.sum.triggerAndWait({ numbers: [worked] }, { labels: { team: 'blue' } })
  worked++
  // Others have something to do on this machine as well.
  await pause(20)
}
await durably.close()
process.stdout.write(`${JSON.stringify({ worked, errors })}\n`)
process.exit(0)
