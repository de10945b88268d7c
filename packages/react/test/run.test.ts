import { createDurably, defineJob, type Durably, type JobContext } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createRunStore, type RunApi, type RunStore, type RunView } from '../src/store'
import { createGate, watch } from './watching'

const opened: { close(): unknown }[] = []

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})

const ANYTHING = z.unknown()

/** An instance in memory that executes one job, and a store on it. */
function open(execute: (ctx: JobContext, payload: unknown) => unknown, { history = true } = {}) {
  const durably = createDurably({ storage: createMemoryStorage(), pollingInterval: 20, logger: null })
  if (history) durably.use(withLogPersistence())
  const { job } = durably.register({ job: defineJob({ name: 'job', input: ANYTHING }, execute as () => null) })
  durably.start()
  opened.push(durably)
  return { durably, job, store: storeOn(durably) }
}

function storeOn(api: RunApi): RunStore {
  const store = createRunStore(api)
  opened.push(store)
  return store
}

const hasEnded = ({ run }: RunView) => run !== null && run.finishedAt !== null

test('shows a run from its trigger to its result', async () => {
  const gate = createGate()
  const { job, store } = open(async (ctx) => {
    const first = await ctx.run('first', async () => 1)
    ctx.progress(1, 2)
    await ctx.run('second', () => gate.opened)
    return { sum: first + 1 }
  })
  const { id } = await job.trigger({})
  const watching = watch(store.run(id))
  expect(watching.views[0]).toMatchObject({ isLoading: true, run: null, status: null })
  const inTheMiddle = await watching.until(({ steps }) => steps.some(({ status }) => status === 'running'))
  expect(inTheMiddle.status).toBe('running')
  expect(inTheMiddle.steps.map(({ name, status, output }) => ({ name, status, output }))).toEqual([
    { name: 'first', status: 'completed', output: 1 },
    { name: 'second', status: 'running', output: undefined },
  ])
  expect((await watching.until(({ progress }) => progress !== null)).progress).toEqual({ current: 1, total: 2 })
  expect((await watching.until(({ isLive }) => isLive)).output).toBe(null)
  gate.open()
  const ended = await watching.until(hasEnded)
  expect(ended).toMatchObject({ status: 'completed', output: { sum: 2 }, error: null, isLive: false, trouble: null })
  expect(ended.steps.map(({ name, status, kind }) => [name, status, kind])).toEqual([
    ['first', 'completed', 'run'],
    ['second', 'completed', 'run'],
  ])
})

test('has the result, the steps and the whole text whenever it says that the run completed', async () => {
  const { job, store } = open(async (ctx) => {
    const text = await ctx.stream('answer', async (emit) => {
      for (let word = 0; word < 300; word++) await emit(`${word} `)
      return 'said'
    })
    return { text }
  })
  const text = Array.from({ length: 300 }, (_, word) => `${word} `).join('')
  for (let round = 0; round < 5; round++) {
    const { id } = await job.trigger({})
    const watching = watch(store.run(id))
    await watching.until(hasEnded)
    const ends = watching.views.filter(({ status }) => status === 'completed')
    for (const end of ends) {
      expect(end.output).toEqual({ text: 'said' })
      expect(end.text).toBe(text)
      expect(end.steps).toMatchObject([{ name: 'answer', status: 'completed', output: 'said' }])
    }
    const texts = watching.views.map((view) => view.text)
    for (const shown of texts) expect(text.startsWith(shown)).toBe(true)
    expect(texts.every((shown, index) => shown.length >= (texts[index - 1]?.length ?? 0))).toBe(true)
    watching.stop()
  }
})

test('who comes late sees the body that runs and what it has said', async () => {
  const gate = createGate()
  const { job, store } = open(async (ctx) => {
    await ctx.run('before', () => 1)
    return ctx.stream('answer', async (emit) => {
      await emit('Hello ')
      await emit({ kind: 'no text' })
      await gate.opened
      await emit('world')
      return 'done'
    })
  })
  const { id } = await job.trigger({})
  const early = watch(store.run(id))
  await early.until(({ text }) => text === 'Hello ')
  const late = watch(storeOn(store.api).run(id))
  const caughtUp = await late.until(({ isLive }) => isLive)
  expect(caughtUp.steps.map(({ name, status }) => [name, status])).toEqual([
    ['before', 'completed'],
    ['answer', 'running'],
  ])
  const heard = await late.until(({ text }) => text === 'Hello ')
  expect(heard.streams).toEqual([{ name: 'answer', text: 'Hello ', chunks: ['Hello ', { kind: 'no text' }] }])
  gate.open()
  expect((await late.until(hasEnded)).text).toBe('Hello world')
})

/** Each event comes in a turn of its own. */
function slow(durably: Durably): RunApi {
  async function* slowly(...[id, options]: Parameters<RunApi['subscribe']>) {
    for await (const event of durably.subscribe(id, options)) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      yield event
    }
  }
  return {
    ...durably,
    subscribe: slowly as (...given: Parameters<RunApi['subscribe']>) => unknown as RunApi['subscribe'],
  }
}

test('who comes late is not shown again what is over', async () => {
  const gate = createGate()
  let attempts = 0
  const { durably, job } = open(async (ctx) => {
    await ctx.run('before', () => 1)
    return ctx.stream('answer', { retry: { maxAttempts: 2, delay: 0 } }, async (emit) => {
      attempts += 1
      await emit(`try ${attempts}`)
      if (attempts === 1) throw new Error('once')
      await gate.opened
    })
  })
  const { id } = await job.trigger({})
  await watch(storeOn(durably).run(id)).until(({ text }) => text === 'try 2')
  const late = watch(storeOn(slow(durably)).run(id))
  await late.until(({ isLive }) => isLive)
  expect(new Set(late.views.map(({ text }) => text))).toEqual(new Set(['', 'try 2']))
  expect(late.views.flatMap(({ steps }) => steps).filter(({ name }) => name === 'before')).not.toContainEqual(
    expect.objectContaining({ status: 'running' }),
  )
  gate.open()
  await late.until(hasEnded)
})

test('a failed run has its error, and a retry by hand is followed again', async () => {
  let isBroken = true
  const { job, store } = open(async (ctx) => {
    await ctx.run('kept', () => 'kept')
    return ctx.run('shaky', () => {
      if (isBroken) throw new Error('The network is down.')
      return 'up'
    })
  })
  const { id } = await job.trigger({})
  const watching = watch(store.run(id))
  const failed = await watching.until(hasEnded)
  expect(failed).toMatchObject({ status: 'failed', error: 'The network is down.', output: null })
  expect(failed.steps.map(({ name, status, error }) => [name, status, error])).toEqual([
    ['kept', 'completed', null],
    ['shaky', 'failed', 'The network is down.'],
  ])
  isBroken = false
  await store.retry(id)
  const completed = await watching.until(({ status }) => status === 'completed')
  expect(completed).toMatchObject({ output: 'up', error: null })
  expect(completed.steps.map(({ name, status }) => [name, status])).toEqual([
    ['kept', 'completed'],
    ['shaky', 'failed'],
    ['shaky', 'completed'],
  ])
})

test('a run that waits says so, and a signal lets it go on', async () => {
  const { job, store } = open(async (ctx) => ctx.waitFor('approval'))
  const { id } = await job.trigger({})
  const watching = watch(store.run(id))
  const waiting = await watching.until(({ steps }) => steps.some(({ status }) => status === 'waiting'))
  expect(waiting.steps).toMatchObject([{ name: 'approval', kind: 'signal' }])
  await store.signal(id, 'approval', { by: 'Mia' })
  expect((await watching.until(hasEnded)).output).toEqual({ by: 'Mia' })
})

test('a run that is not there, and one that is deleted, are missing', async () => {
  const { job, store } = open(() => 'done')
  const nowhere = watch(store.run('nowhere'))
  expect(await nowhere.until(({ isMissing }) => isMissing)).toMatchObject({
    run: null,
    isLoading: false,
    trouble: null,
  })
  const { id } = await job.trigger({})
  const watching = watch(store.run(id))
  await watching.until(hasEnded)
  await store.deleteRun(id)
  expect(await watching.until(({ isMissing }) => isMissing)).toMatchObject({ run: null, status: null, steps: [] })
})

/** Loses the connection after so many events, each time. */
function unsteady(durably: Durably, eventsEach: number) {
  const cuts: string[] = []
  async function* unsteadily(...[id, options]: Parameters<RunApi['subscribe']>) {
    let left = eventsEach
    for await (const event of durably.subscribe(id, options)) {
      yield event
      left -= 1
      if (left > 0) continue
      cuts.push(event.type)
      throw new Error('The connection was lost.')
    }
  }
  const subscribe = unsteadily as (...given: Parameters<RunApi['subscribe']>) => unknown as RunApi['subscribe']
  return { api: { ...durably, subscribe }, cuts }
}

test('a connection that is lost again and again leaves no gap, no double and no flash', async () => {
  const gate = createGate()
  const { durably, job } = open(async (ctx) =>
    ctx.stream('answer', async (emit) => {
      await emit('0 ')
      await gate.opened
      for (let word = 1; word < 12; word++) await emit(`${word} `)
      return 'said'
    }),
  )
  const { api, cuts } = unsteady(durably, 2)
  const { id } = await job.trigger({})
  const watching = watch(storeOn(api).run(id))
  await watching.until(({ text }) => text === '0 ')
  gate.open()
  const ended = await watching.until(hasEnded)
  expect(cuts.length).toBeGreaterThan(1)
  expect(ended.text).toBe('0 1 2 3 4 5 6 7 8 9 10 11 ')
  const seen = watching.views.slice(watching.views.findIndex(({ run }) => run !== null))
  expect(seen.every(({ run, isLoading }) => run !== null && !isLoading)).toBe(true)
  expect(seen.some(({ trouble, isLive }) => trouble?.message === 'The connection was lost.' && !isLive)).toBe(true)
  expect(ended.trouble).toBe(null)
})

test('what could not be read is read again', async () => {
  const { durably, job } = open(() => 'done')
  let failures = 1
  const api: RunApi = {
    ...durably,
    async getRun(id) {
      if (failures-- > 0) throw new Error('The server is away.')
      return durably.getRun(id)
    },
  }
  const { id } = await job.trigger({})
  const watching = watch(storeOn(api).run(id))
  const troubled = await watching.until(({ trouble }) => trouble !== null)
  expect(troubled).toMatchObject({ isLoading: true, run: null })
  expect(await watching.until(hasEnded)).toMatchObject({ status: 'completed', output: 'done', trouble: null })
})

test('without a history it shows what the instance tells', async () => {
  const gate = createGate()
  const { job, store } = open(
    async (ctx) => {
      await ctx.run('before', () => gate.opened)
      return ctx.stream('answer', async (emit) => {
        await emit('Hello')
        return 'done'
      })
    },
    { history: false },
  )
  const { id } = await job.trigger({})
  const watching = watch(store.run(id))
  await watching.until(({ isLive }) => isLive)
  gate.open()
  const ended = await watching.until(hasEnded)
  expect(ended).toMatchObject({ status: 'completed', output: 'done', text: 'Hello' })
  expect(ended.steps.map(({ name, status }) => [name, status])).toEqual([
    ['before', 'completed'],
    ['answer', 'completed'],
  ])
})

test('what a client is told of by hints only is read when they come', async () => {
  const { durably, job } = open(() => 'done', { history: false })
  let hint: Parameters<NonNullable<RunApi['watchRuns']>>[0] = () => {}
  const { on: _on, ...client } = durably
  const api: RunApi = {
    ...client,
    watchRuns(listener) {
      hint = listener
      return () => {}
    },
  }
  await durably.stop()
  const { id } = await job.trigger({})
  const watching = watch(storeOn(api).run(id))
  expect((await watching.until(({ run }) => run !== null)).status).toBe('pending')
  durably.start()
  await job.wait(id)
  hint({ runId: 'another', isUrgent: true })
  hint({ runId: id, isUrgent: true })
  expect(await watching.until(hasEnded)).toMatchObject({ status: 'completed', output: 'done' })
})

test('a run that is followed needs no hints, one that has ended does, and nobody needs any when nobody looks', async () => {
  const gate = createGate()
  const { durably, job } = open(() => gate.opened)
  const sources: string[] = []
  const { on: _on, ...client } = durably
  const api: RunApi = {
    ...client,
    watchRuns() {
      sources.push('opened')
      return () => sources.push('closed')
    },
  }
  const { id } = await job.trigger({})
  const watching = watch(storeOn(api).run(id))
  await watching.until(({ isLive }) => isLive)
  expect(sources).toEqual([])
  gate.open()
  await watching.until(hasEnded)
  await expect.poll(() => sources).toEqual(['opened'])
  watching.stop()
  await expect.poll(() => sources).toEqual(['opened', 'closed'])
})

test('is read and followed once, whoever listens, until nobody does', async () => {
  const gate = createGate()
  const { durably, job } = open(() => gate.opened)
  let subscriptions = 0
  const signals: (AbortSignal | undefined)[] = []
  const api: RunApi = {
    ...durably,
    subscribe(id, options) {
      subscriptions += 1
      signals.push(options?.signal)
      return durably.subscribe(id, options)
    },
  }
  const store = storeOn(api)
  const { id } = await job.trigger({})
  const first = watch(store.run(id))
  const second = watch(store.run(id))
  await first.until(({ isLive }) => isLive)
  // As StrictMode does: away, and back at once.
  first.stop()
  second.stop()
  const third = watch(store.run(id))
  expect(third.views[0]).toMatchObject({ isLive: true, status: 'running' })
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(third.views.at(-1)?.isLive).toBe(true)
  expect(subscriptions).toBe(1)
  third.stop()
  await expect.poll(() => signals.every((signal) => signal?.aborted)).toBe(true)
  gate.open()
  await job.wait(id)
  const back = watch(store.run(id))
  expect(back.views[0]).toMatchObject({ isLoading: false, status: 'running' })
  expect((await back.until(hasEnded)).status).toBe('completed')
})

test('a trigger that hands back a run from before shows it as a whole', async () => {
  const { job, store } = open(async (ctx) => ctx.run('step', () => 1))
  const { id } = await job.trigger({}, { idempotencyKey: 'once' })
  await job.wait(id)
  expect((await store.trigger('job', {}, { idempotencyKey: 'once' })).id).toBe(id)
  const watching = watch(store.run(id))
  await watching.until(hasEnded)
  const ends = watching.views.filter(({ status }) => status === 'completed')
  expect(ends.every(({ steps }) => steps.length === 1)).toBe(true)
})

test('a run that this page triggers is shown at once', async () => {
  const { store } = open(() => 'done')
  const { id } = await store.trigger('job', { n: 1 })
  const watching = watch(store.run(id))
  expect(watching.views[0]).toMatchObject({ isLoading: false, status: 'pending' })
  expect((await watching.until(hasEnded)).output).toBe('done')
})
