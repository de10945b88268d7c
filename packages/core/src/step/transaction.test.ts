import { expect, it } from 'vitest'
import { StorageError } from '../index'
import type { TransactionStorage } from '../storage'
import { settled } from '../testing/fake-clock'
import { anything, createBench, createGate } from '../testing/test-bench'

it('does not begin a transaction again whose run was found cancelled when its outcome was asked for', async () => {
  const bench = createBench()
  const [sent, answered] = [createGate(), createGate()]
  const refuse = () => Promise.reject(new Error('Nobody asks for it.'))
  const transaction: TransactionStorage = {
    async commitWith(body) {
      await body({})
      sent.open()
      await answered.opened
      throw new StorageError('STORAGE_UNAVAILABLE', 'The connection was cut.')
    },
    enqueue: refuse,
    run: refuse,
  }
  const durably = bench.open({ storage: { ...bench.storage, transaction } })
  let bodies = 0
  const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
    ctx.transaction('pay', () => {
      bodies += 1
    }),
  )
  durably.start()
  await settled()
  const { id } = await job.trigger({})
  await sent.opened
  await bench.open().cancel(id)
  answered.open()
  await bench.clock.advance(2000)
  expect(await durably.getRun(id)).toMatchObject({ status: 'cancelled' })
  expect(bodies).toBe(1)
  await bench.close()
})

it('knows the run that has the key of a child, created with a transaction whose answer was lost', async () => {
  const bench = createBench()
  const gate = createGate()
  const refuse = () => Promise.reject(new Error('Nobody asks for it.'))
  const transaction: TransactionStorage = {
    async commitWith(body) {
      const { commit } = await body({})
      await bench.storage.commit([commit])
      throw new StorageError('STORAGE_UNAVAILABLE', 'The connection was cut.')
    },
    enqueue: refuse,
    run: refuse,
  }
  const durably = bench.open({ storage: { ...bench.storage, transaction } })
  const child = durably.defineJob({ name: 'child', input: anything }, () => 'done')
  const parent = durably.defineJob({ name: 'parent', input: anything }, async (ctx) => {
    const paid = ctx.transaction('pay', () => gate.opened)
    const created = await ctx.trigger('create', child, {}, { idempotencyKey: 'known' })
    await paid
    return [created.id, await ctx.wait('wait', created)]
  })
  const known = await child.trigger({}, { idempotencyKey: 'known' })
  durably.start()
  const { id } = await parent.trigger({})
  await bench.clock.advance(1000)
  gate.open()
  await bench.clock.advance(2000)
  expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: [known.id, 'done'] })
  await bench.close()
})

it('finds no fault with the storage when the run is interrupted while its transaction waits for a connection', async () => {
  const bench = createBench()
  const [asked, connected] = [createGate(), createGate()]
  const refuse = () => Promise.reject(new Error('Nobody asks for it.'))
  const transaction: TransactionStorage = {
    async commitWith(body) {
      asked.open()
      await connected.opened
      const { value, commit } = await body({})
      const [answer] = await bench.storage.commit([commit])
      if (answer === undefined) throw new Error('No answer.')
      return { value, answer }
    },
    enqueue: refuse,
    run: refuse,
  }
  const durably = bench.open({ storage: { ...bench.storage, transaction } })
  const troubles: string[] = []
  durably.on('worker:error', ({ during, code }) => troubles.push(`${during}: ${code}`))
  const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.transaction('pay', () => 'paid'))
  durably.start()
  await settled()
  const { id } = await job.trigger({})
  await asked.opened
  const stopped = durably.stop({ timeout: 0 })
  await bench.clock.advance(10)
  connected.open()
  await bench.clock.advance(10_000)
  await stopped
  expect(await durably.getRun(id)).toMatchObject({ status: 'pending', crashCount: 0 })
  expect([troubles, durably.health().trouble]).toEqual([[], null])
  await bench.close()
})
