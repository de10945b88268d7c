import { createDurably, type Durably } from '@coji/durably-core'
import { SQLocalKysely } from 'sqlocal/kysely'
import { afterEach, expect, it } from 'vitest'
import { commands } from 'vitest/browser'
import { sqlocal } from '../src/drivers/sqlocal'
import { createKyselyStorage } from '../src/kysely-storage'
import { removeFile } from './contract-setup'

/** Of the vitest config, which knows no types. */
const { reportSuite } = commands as unknown as {
  reportSuite(report: { readonly suite: string; readonly [key: string]: string | number }): Promise<void>
}

const RUNS = 8
const STEPS = 12

const leftovers: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const clean of leftovers.splice(0).reverse()) await clean()
})

/** An instance, and how many messages its worker was sent. */
async function open(concurrency: number) {
  const file = `speed-${crypto.randomUUID()}.sqlite3`
  const dialect = sqlocal(file)
  const messages = countMessages(dialect.client)
  const durably = createDurably({ storage: createKyselyStorage({ dialect }), concurrency })
  leftovers.push(
    () => removeFile(file),
    () => durably.close(),
  )
  await durably.migrate()
  const job = durably.defineJob({ name: 'steps', input: { '~standard': anything } }, async (ctx) => {
    for (let step = 1; step <= STEPS; step++) {
      await ctx.run(`step ${step}`, () => ({ step }))
      ctx.progress(step, STEPS)
    }
  })
  return { durably, job, messages }
}

const anything = { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } as const

function countMessages(client: SQLocalKysely) {
  const worker = client['processor'] as Worker
  const send = worker.postMessage.bind(worker)
  const counter = { sent: 0 }
  worker.postMessage = (message: unknown) => {
    counter.sent += 1
    send(message)
  }
  return counter
}

async function paceOf({ durably, job, messages }: Awaited<ReturnType<typeof open>>) {
  await job.batchTrigger(Array.from({ length: RUNS }, () => ({ payload: null })))
  const [before, started] = [messages.sent, performance.now()]
  await durably.runUntilIdle()
  const seconds = (performance.now() - started) / 1000
  const sent = messages.sent - before
  await expectAllCompleted(durably)
  return { stepsPerSecond: Math.round((RUNS * STEPS) / seconds), sent }
}

async function expectAllCompleted(durably: Durably): Promise<void> {
  expect(await durably.counts()).toMatchObject({ completed: RUNS })
}

/** A second. */
async function rawInserts(): Promise<number> {
  const file = `raw-${crypto.randomUUID()}.sqlite3`
  const client = new SQLocalKysely(file)
  leftovers.push(
    () => removeFile(file),
    () => client.destroy(),
  )
  await client.sql('create table rows (id integer primary key, value text) strict')
  const inserts = 60
  const started = performance.now()
  for (let each = 0; each < inserts; each++) await client.sql('insert into rows (value) values (?)', 'a value')
  return (inserts / (performance.now() - started)) * 1000
}

it('makes one worker message of a step', async () => {
  const { durably, job, messages } = await open(1)
  await job.trigger(null)
  const before = messages.sent
  const run = durably.runUntilIdle()
  await run
  // Claim, one for each step, the end; around it the looks of a worker that begins and finds nothing more.
  const around = messages.sent - before - STEPS
  expect(around).toBeGreaterThanOrEqual(2)
  expect(around).toBeLessThanOrEqual(10)
})

it('shares the messages of eight that go on at once', async () => {
  const rawInsertsPerSecond = Math.round(await rawInserts())
  const alone = await paceOf(await open(1))
  const together = await paceOf(await open(RUNS))
  await reportSuite({
    suite: 'OPFS in Chromium',
    rawInsertsPerSecond,
    stepsPerSecondAlone: alone.stepsPerSecond,
    stepsPerSecondOfEight: together.stepsPerSecond,
    messagesAlone: alone.sent,
    messagesOfEight: together.sent,
  })
  // The messages take nearly all of the time.
  expect(alone.sent / together.sent).toBeGreaterThanOrEqual(4)
})
