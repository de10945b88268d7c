import { createDurably, defineJob, type JobContext } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createRunStore, type RunApi } from '../src/store'
import { createGate, watch } from './watching'

const opened: { close(): unknown }[] = []

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})

function open(execute: (ctx: JobContext, payload: unknown) => unknown) {
  const durably = createDurably({ storage: createMemoryStorage(), pollingInterval: 20, logger: null })
  durably.use(withLogPersistence())
  const { job } = durably.register({ job: defineJob({ name: 'job', input: z.unknown() }, execute as () => null) })
  const store = createRunStore(durably)
  opened.push(durably, store)
  return { durably, job, store }
}

test('a list shows new runs, how they end, and those that are gone', async () => {
  const { durably, job, store } = open(() => 'done')
  const watching = watch(store.runs())
  expect(watching.views[0]).toMatchObject({ isLoading: true, runs: [] })
  expect(await watching.until(({ isLoading }) => !isLoading)).toMatchObject({ runs: [], hasMore: false })
  const { id: first } = await job.trigger({})
  await watching.until(({ runs }) => runs.length === 1)
  const { id: second } = await job.trigger({})
  const both = await watching.until(({ runs }) => runs.length === 2)
  expect(both.runs.map(({ id, status }) => [id, status])).toEqual([
    [second, 'pending'],
    [first, 'pending'],
  ])
  durably.start()
  await watching.until(({ runs }) => runs.every(({ status }) => status === 'completed'))
  await store.deleteRun(first)
  await watching.until(({ runs }) => runs.length === 1)
})

test('a list keeps to its filter, and the same filter is the same list', async () => {
  const { job, store } = open(() => 'done')
  let reads = 0
  const api: RunApi = {
    ...store.api,
    getRuns(filter) {
      reads += 1
      return store.api.getRuns(filter)
    },
  }
  const counting = createRunStore(api)
  opened.push(counting)
  await job.trigger({}, { labels: { team: 'red', tier: 'a' } })
  await job.trigger({}, { labels: { team: 'blue', tier: 'a' } })
  const one = watch(counting.runs({ labels: { team: 'red', tier: 'a' }, status: 'pending' }))
  const other = watch(counting.runs({ status: 'pending', labels: { tier: 'a', team: 'red' } }))
  const { runs } = await one.until(({ isLoading }) => !isLoading)
  expect(runs.map(({ labels }) => labels['team'])).toEqual(['red'])
  expect((await other.until(({ isLoading }) => !isLoading)).runs).toBe(runs)
  expect(reads).toBe(1)
  await counting.cancel(runs[0]?.id ?? '')
  await one.until((view) => view.runs.length === 0)
})

test('a long list is shown in pages, and stays as long as it was made', async () => {
  const { job, store } = open(() => 'done')
  await job.batchTrigger(Array.from({ length: 25 }, () => ({ payload: {} })))
  const list = store.runs({}, { pageSize: 10 })
  const watching = watch(list)
  expect(await watching.until(({ isLoading }) => !isLoading)).toMatchObject({ hasMore: true })
  expect(list.get().runs.length).toBe(10)
  list.showMore()
  expect((await watching.until(({ runs }) => runs.length === 20)).hasMore).toBe(true)
  list.showMore()
  expect((await watching.until(({ runs }) => runs.length === 25)).hasMore).toBe(false)
  await job.trigger({})
  await watching.until(({ runs }) => runs.length === 26)
})

test('a list that cannot be read keeps what it has, and says so', async () => {
  const { job, store } = open(() => 'done')
  await job.trigger({})
  let isAway = false
  const api: RunApi = {
    ...store.api,
    getRuns: (filter) => (isAway ? Promise.reject(new Error('The server is away.')) : store.api.getRuns(filter)),
  }
  const failing = createRunStore(api)
  opened.push(failing)
  const watching = watch(failing.runs())
  await watching.until(({ runs }) => runs.length === 1)
  isAway = true
  failing.refresh()
  const troubled = await watching.until(({ trouble }) => trouble !== null)
  expect(troubled.runs.length).toBe(1)
  isAway = false
  await watching.until(({ trouble }) => trouble === null)
})

test('logs come as they are written, each once', async () => {
  const gate = createGate()
  const { durably, job, store } = open(async (ctx) => {
    ctx.log.info('begins', { at: 1 })
    await ctx.run('step', ({ log }) => {
      log.warn('in the middle')
      return gate.opened
    })
    ctx.log.error('ends')
  })
  durably.start()
  const { id } = await job.trigger({})
  const watching = watch(store.logs(id))
  const early = await watching.until(({ items }) => items.some(({ message }) => message === 'begins'))
  expect(early.items[0]).toMatchObject({ level: 'info', data: { at: 1 }, stepName: null })
  gate.open()
  const all = await watching.until(({ items }) => items.some(({ message }) => message === 'ends'))
  expect(all.items.map(({ message, stepName }) => [message, stepName])).toEqual([
    ['begins', null],
    ['in the middle', 'step'],
    ['ends', null],
  ])
})

test('events come as they are stored, each once', async () => {
  const { durably, job, store } = open(async (ctx) => {
    await ctx.run('step', () => 1)
  })
  const { id } = await job.trigger({})
  const watching = watch(store.events(id))
  await watching.until(({ items }) => items.length === 1)
  durably.start()
  const all = await watching.until(({ items }) => items.some(({ type }) => type === 'run:complete'))
  expect(all.items.map(({ seq, type }) => [seq, type])).toEqual([
    [1, 'run:trigger'],
    [2, 'run:start'],
    [3, 'step:start'],
    [4, 'step:complete'],
    [5, 'run:complete'],
  ])
})

test('a stream is there from its beginning when its run ended long ago, each by its name', async () => {
  const { durably, job, store } = open(async (ctx) => {
    for (const name of ['question', 'answer']) {
      await ctx.stream(name, async (emit) => {
        await emit(`${name}: `)
        await emit('words')
        return `${name} said`
      })
    }
  })
  durably.start()
  const { id } = await job.trigger({})
  await job.wait(id)
  const question = watch(store.stream(id, 'question'))
  const last = watch(store.stream(id))
  const ended = await question.until(({ status }) => status === 'completed')
  expect(ended).toMatchObject({ text: 'question: words', isStreaming: false })
  expect(ended.step).toMatchObject({ status: 'completed', output: 'question said' })
  expect((await last.until(({ status }) => status === 'completed')).text).toBe('answer: words')
})

test('something else about runs is read again when they change', async () => {
  const { durably, job, store } = open(() => 'done')
  const watching = watch(store.read('counts', () => durably.counts()))
  expect((await watching.until(({ isLoading }) => !isLoading)).value).toMatchObject({ pending: 0 })
  await job.trigger({})
  await watching.until(({ value }) => value?.pending === 1)
})
