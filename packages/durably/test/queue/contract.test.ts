import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createDurably, PermanentError, RetryAfterError, type Storage } from '../../src/index'
import type { TaskCounts, TaskQueue } from '../../src/queue'
import { createGate } from './gate'
import { DATABASES } from '../databases'
import { newFile, openOn } from '../instances'
import { openQueue, PLACES, recordTasks } from './queues'

const NONE: TaskCounts = { queued: 0, running: 0, retry_scheduled: 0, succeeded: 0, dead: 0 }

describe.each(PLACES)('a queue on $name', ({ open }) => {
  async function openStarted(handlers: Record<string, (payload: never, ctx: never) => unknown>, options = {}) {
    const storage = await open()
    const queue = openQueue(storage, options)
    for (const [type, handler] of Object.entries(handlers)) queue.register(type, handler as () => unknown)
    queue.start()
    return { queue, storage }
  }

  const stateOf = async (queue: TaskQueue, id: string) => (await queue.status(id))?.state
  const ends = (queue: TaskQueue, id: string, state: string) => expect.poll(() => stateOf(queue, id)).toBe(state)

  it('executes a task, and says where it is at every moment', async () => {
    const gate = createGate()
    const seen: unknown[] = []
    const queue = openQueue(await open())
    queue.register('greet', async (payload: unknown, ctx) => {
      seen.push(payload, ctx.taskType, ctx.attempt, ctx.maxAttempts)
      await gate.opened
    })
    const task = await queue.enqueue('greet', { who: 'mary' })
    expect(task).toMatchObject({
      type: 'greet',
      payload: { who: 'mary' },
      state: 'queued',
      attempts: 0,
      maxAttempts: 5,
      lastError: null,
      nextRunAt: null,
      priority: 0,
      startedAt: null,
      finishedAt: null,
      deduplicated: false,
    })
    expect(await queue.countsByState()).toEqual({ ...NONE, queued: 1 })
    queue.start()
    await ends(queue, task.id, 'running')
    expect(await queue.status(task.id)).toMatchObject({ attempts: 1, startedAt: expect.any(String), nextRunAt: null })
    expect(await queue.countsByState()).toEqual({ ...NONE, running: 1 })
    gate.open()
    await ends(queue, task.id, 'succeeded')
    expect(await queue.status(task.id)).toMatchObject({ attempts: 1, lastError: null, finishedAt: expect.any(String) })
    expect(await queue.countsByState()).toEqual({ ...NONE, succeeded: 1 })
    expect(seen).toEqual([{ who: 'mary' }, 'greet', 1, 5])
    expect(await queue.status('nobody')).toBe(null)
  })

  it('puts what failed back for later, and says why and until when', async () => {
    let fails = 1
    const queue = openQueue(await open(), {
      retry: { maxAttempts: 5, delay: (attempt) => (attempt === 1 ? 3_600_000 : 0) },
    })
    const events = recordTasks(queue)
    queue.register('flaky', () => {
      if (fails-- > 0) throw new Error('no luck')
    })
    queue.start()
    const { id } = await queue.enqueue('flaky', null)
    await ends(queue, id, 'retry_scheduled')
    const task = await queue.status(id)
    expect(task).toMatchObject({ attempts: 1, lastError: 'no luck' })
    const waitMs = Date.parse(task?.nextRunAt ?? '') - Date.parse(task?.updatedAt ?? '')
    expect(waitMs).toBeGreaterThan(3_590_000)
    expect(await queue.countsByState()).toEqual({ ...NONE, retry_scheduled: 1 })
    expect((await queue.list({ state: 'retry_scheduled' })).map((each) => each.id)).toEqual([id])
    expect(await queue.list({ state: 'queued' })).toEqual([])
    // The record is there before the one who wrote it has the answer.
    await expect.poll(() => events.length).toBe(4)
    expect(events).toMatchObject([
      { type: 'enqueued', taskId: id, taskType: 'flaky', cause: 'new' },
      { type: 'started', attempt: 1 },
      { type: 'failed', attempt: 1, error: 'no luck', durationMs: expect.any(Number) },
      { type: 'retry_scheduled', attempt: 1, error: 'no luck', backoffMs: 3_600_000, nextRunAt: expect.any(String) },
    ])
  })

  it('executes a task maxAttempts times at most, and leaves it dead with its last error', async () => {
    const attempts: number[] = []
    const { queue } = await openStarted({
      broken: (_payload, { attempt }: { attempt: number }) => {
        attempts.push(attempt)
        throw new Error(`no luck, time ${attempt}`)
      },
    })
    const events = recordTasks(queue)
    const { id } = await queue.enqueue('broken', null)
    await ends(queue, id, 'dead')
    expect(attempts).toEqual([1, 2, 3, 4, 5])
    expect(await queue.status(id)).toMatchObject({ attempts: 5, lastError: 'no luck, time 5', nextRunAt: null })
    expect(await queue.countsByState()).toEqual({ ...NONE, dead: 1 })
    await expect.poll(() => events.at(-1)).toMatchObject({ type: 'dead', attempts: 5, error: 'no luck, time 5' })
    expect(events.filter(({ type }) => type === 'failed')).toHaveLength(5)
    expect(events.filter(({ type }) => type === 'retry_scheduled')).toHaveLength(4)
  })

  it('does not try again what is permanent, and waits as long as an error asks for', async () => {
    const { queue } = await openStarted({
      permanent: () => {
        throw new PermanentError('there is no such address')
      },
      busy: () => {
        throw new RetryAfterError('come back', 7_200_000)
      },
    })
    const permanent = await queue.enqueue('permanent', null)
    await ends(queue, permanent.id, 'dead')
    expect(await queue.status(permanent.id)).toMatchObject({ attempts: 1, lastError: 'there is no such address' })
    const busy = await queue.enqueue('busy', null)
    await ends(queue, busy.id, 'retry_scheduled')
    const { nextRunAt, updatedAt } = (await queue.status(busy.id)) ?? {}
    expect(Date.parse(nextRunAt ?? '') - Date.parse(updatedAt ?? '')).toBeGreaterThan(7_190_000)
  })

  it.each<[string, unknown]>([
    ['a policy', () => 1e16],
    ['an error', new RetryAfterError('much later', 1e15)],
  ])('puts a retry off for a hundred years at most: %s', async (_name, asked) => {
    const options = typeof asked === 'function' ? { retry: { maxAttempts: 5, delay: asked } } : {}
    const { queue } = await openStarted({ busy: () => Promise.reject(asked) }, options)
    const { id } = await queue.enqueue('busy', null)
    await ends(queue, id, 'retry_scheduled')
    expect((await queue.status(id))?.nextRunAt).toMatch(/^21[23]\d-/)
  })

  it.each<[string, () => unknown, string]>([
    ['a rejected promise', () => Promise.reject(new Error('rejected')), 'rejected'],
    [
      'a synchronous throw',
      () => {
        throw new TypeError('thrown')
      },
      'thrown',
    ],
    ['a thrown text', () => Promise.reject('just a text'), 'just a text'],
    ['nothing thrown', () => Promise.reject(), 'undefined'],
  ])('records %s', async (_name, handler, error) => {
    const { queue } = await openStarted({ broken: handler }, { retry: { maxAttempts: 1, delay: 0 } })
    const { id } = await queue.enqueue('broken', null)
    await ends(queue, id, 'dead')
    expect((await queue.status(id))?.lastError).toContain(error)
  })

  it('keeps nothing of what a handler returns, whatever it is', async () => {
    const { queue } = await openStarted({ odd: () => new Map([[Symbol('a'), 1n]]) })
    const { id } = await queue.enqueue('odd', null)
    await ends(queue, id, 'succeeded')
  })

  it('gives up a handler that never settles at its timeout, tells it, and does not hear it later', async () => {
    const late = createGate()
    const reasons: unknown[] = []
    const storage = await open()
    const queue = openQueue(storage, { retry: { maxAttempts: 2, delay: 0 } })
    queue.register('stuck', { timeout: 20 }, (_payload, { signal, attempt }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason.code))
      return attempt === 1 ? late.opened : new Promise(() => {})
    })
    queue.start()
    const { id } = await queue.enqueue('stuck', null)
    await ends(queue, id, 'dead')
    late.fail(new Error('too late'))
    expect(reasons).toEqual(['TIMEOUT', 'TIMEOUT'])
    expect(await queue.status(id)).toMatchObject({ attempts: 2, lastError: 'The task "stuck" took longer than 20 ms.' })
  })

  it('refuses what it cannot execute, and enqueues nothing', async () => {
    const storage = await open()
    const queue = openQueue(storage)
    const schema = z.object({ to: z.email() })
    queue.register('mail', { schema }, () => {})
    queue.register('any', () => {})
    await expect(queue.enqueue('nail', {})).rejects.toMatchObject({
      code: 'UNKNOWN_TASK_TYPE',
      message:
        'No handler for tasks of type "nail" is registered on this queue; there are "mail", "any". To enqueue them, declare() does.',
    })
    await expect(queue.enqueue('mail', { to: 'nobody' })).rejects.toMatchObject({ code: 'VALIDATION' })
    const items = [{ payload: { to: 'mary@example.com' } }, { payload: { to: 'nobody' } }]
    await expect(queue.enqueueMany('mail', items)).rejects.toMatchObject({ code: 'VALIDATION' })
    await expect(queue.enqueue('any', 'a'.repeat(1024 * 1024))).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    await expect(queue.enqueue('any', { when: new Date() })).rejects.toMatchObject({ code: 'SERIALIZATION' })
    await expect(queue.enqueue('any', 1, { delay: -1 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(() => queue.register('any', () => {})).toThrow(
      expect.objectContaining({ code: 'DUPLICATE_HANDLER' }) as Error,
    )
    queue.start()
    await queue.stop()
    await expect(queue.enqueue('any', 1)).rejects.toMatchObject({ code: 'QUEUE_STOPPED' })
    expect(await queue.countsByState()).toEqual(NONE)
    queue.start()
    const { id } = await queue.enqueue('mail', { to: 'mary@example.com' })
    await ends(queue, id, 'succeeded')
  })

  it('hands a handler what its schema parsed', async () => {
    const seen: unknown[] = []
    const queue = openQueue(await open())
    const schema = z.object({ to: z.string().trim(), copies: z.number().default(1) })
    queue.register({ taskType: 'mail', schema, execute: (mail) => seen.push(mail) })
    queue.start()
    const { id, payload } = await queue.enqueue('mail', { to: ' mary ' })
    expect(payload).toEqual({ to: 'mary', copies: 1 })
    await ends(queue, id, 'succeeded')
    expect(seen).toEqual([{ to: 'mary', copies: 1 }])
  })

  it('takes an object with state of its own as a handler', async () => {
    class Counter {
      readonly taskType = 'count'
      total = 0
      execute(by: number) {
        this.total += by
      }
    }
    const counter = new Counter()
    const queue = openQueue(await open())
    queue.register(counter)
    queue.start()
    const { id } = await queue.enqueue('count', 2)
    await ends(queue, id, 'succeeded')
    expect(counter.total).toBe(2)
  })

  it('takes the higher priority first, then the older', async () => {
    const order: unknown[] = []
    const queue = openQueue(await open())
    queue.register('note', (payload) => order.push(payload))
    await queue.enqueue('note', 'first')
    await queue.enqueue('note', 'second')
    const { id } = await queue.enqueue('note', 'last', { priority: -1 })
    await queue.enqueue('note', 'urgent', { priority: 5 })
    queue.start()
    await ends(queue, id, 'succeeded')
    expect(order).toEqual(['urgent', 'first', 'second', 'last'])
  })

  it('does not begin a task before its time', async () => {
    const { queue } = await openStarted({ later: () => {} })
    const now = await queue.enqueue('later', null)
    const hour = await queue.enqueue('later', null, { delay: 3_600_000 })
    const day = await queue.enqueue('later', null, { runAt: new Date(Date.now() + 86_400_000) })
    const soon = await queue.enqueue('later', null, { delay: 20 })
    await ends(queue, now.id, 'succeeded')
    await ends(queue, soon.id, 'succeeded')
    expect(await queue.status(hour.id)).toMatchObject({ state: 'queued', attempts: 0, nextRunAt: hour.nextRunAt })
    expect(Date.parse(hour.nextRunAt ?? '')).toBeGreaterThan(Date.now() + 3_500_000)
    expect(await stateOf(queue, day.id)).toBe('queued')
  })

  it('has one task for one dedupeKey of a type', async () => {
    const queue = openQueue(await open())
    queue.register('mail', () => {})
    queue.register('sms', () => {})
    const first = await queue.enqueue('mail', 1, { dedupeKey: 'order 7' })
    const second = await queue.enqueue('mail', 1, { dedupeKey: 'order 7' })
    const other = await queue.enqueue('sms', 1, { dedupeKey: 'order 7' })
    expect(second).toMatchObject({ id: first.id, deduplicated: true })
    expect(other).toMatchObject({ deduplicated: false })
    expect(await queue.countsByState()).toMatchObject({ queued: 2 })
  })

  it('redrives the dead with all their attempts before them', async () => {
    let isRepaired = false
    const work = () => {
      if (!isRepaired) throw new Error('broken')
    }
    const options = { retry: { maxAttempts: 2, delay: 0 } }
    const before = await openStarted({ one: work, other: work }, options)
    const tasks = await before.queue.enqueueMany('one', [{ payload: 1 }, { payload: 2 }, { payload: 3 }])
    const apart = await before.queue.enqueue('other', 4)
    for (const { id } of [...tasks, apart]) await ends(before.queue, id, 'dead')
    // A claim may be under way, and would begin what is redriven.
    await before.queue.stop()
    const queue = openQueue(before.storage, options)
    for (const type of ['one', 'other']) queue.register(type, work)
    const [first] = tasks
    expect(await queue.redrive(first?.id ?? '')).toMatchObject({ state: 'queued', attempts: 0, finishedAt: null })
    await expect(queue.redrive(first?.id ?? '')).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(queue.redrive('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await queue.redrive({ type: 'one' })).toBe(2)
    expect(await queue.countsByState()).toEqual({ ...NONE, queued: 3, dead: 1 })
    queue.start()
    for (const { id } of tasks) await ends(queue, id, 'dead')
    for (const { id } of tasks) expect(await queue.status(id)).toMatchObject({ attempts: 2 })
    isRepaired = true
    expect(await queue.redrive({})).toBe(4)
    for (const { id } of [...tasks, apart]) await ends(queue, id, 'succeeded')
  })

  it('removes what is not running, and purges what has ended', async () => {
    const gate = createGate()
    const queue = openQueue(await open(), { retry: { maxAttempts: 2, delay: 3_600_000 }, concurrency: 2 })
    queue.register('hold', () => gate.opened)
    queue.register('fail', () => Promise.reject(new Error('no')))
    queue.register('die', { retry: { maxAttempts: 1, delay: 0 } }, () => Promise.reject(new Error('no')))
    queue.register('pass', () => {})
    queue.start()
    const running = await queue.enqueue('hold', null)
    const retried = await queue.enqueue('fail', null)
    const dead = await queue.enqueue('die', null)
    const done = await queue.enqueue('pass', null)
    const waiting = await queue.enqueue('pass', null, { delay: 3_600_000 })
    await ends(queue, running.id, 'running')
    await ends(queue, retried.id, 'retry_scheduled')
    await ends(queue, dead.id, 'dead')
    await ends(queue, done.id, 'succeeded')
    await expect(queue.remove(running.id)).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(queue.remove('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const events = recordTasks(queue)
    await queue.remove(retried.id)
    await queue.remove(waiting.id)
    expect(await queue.countsByState()).toEqual({ ...NONE, running: 1, succeeded: 1, dead: 1 })
    expect(await queue.purge({ state: 'dead' })).toBe(1)
    expect(await queue.purge({ type: 'fail' })).toBe(0)
    expect(await queue.purge({ olderThan: 3_600_000 })).toBe(0)
    expect(await queue.purge({ olderThan: new Date(Date.now() - 3_600_000) })).toBe(0)
    expect(await queue.purge()).toBe(1)
    expect(await queue.list()).toMatchObject([{ id: running.id }])
    expect(events).toEqual([])
    gate.open()
  })

  it('gives back at stop() what does not end in time, and leaves nothing running', async () => {
    const gate = createGate()
    const reasons: unknown[] = []
    const storage = await open()
    const queue = openQueue(storage)
    queue.register('hold', (_payload, { signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason.reason))
      return gate.opened
    })
    queue.start()
    const { id } = await queue.enqueue('hold', null)
    await ends(queue, id, 'running')
    await queue.stop({ timeout: 0 })
    expect(await queue.status(id)).toMatchObject({ state: 'queued', attempts: 0 })
    expect(reasons).toEqual(['shutdown'])
    const next = openQueue(storage)
    next.register('hold', () => {})
    next.start()
    await ends(next, id, 'succeeded')
    gate.fail(new Error('too late'))
    expect(await next.status(id)).toMatchObject({ state: 'succeeded', attempts: 1, lastError: null })
  })

  it('waits at stop() for what is running', async () => {
    const gate = createGate()
    const { queue } = await openStarted({ hold: () => gate.opened })
    const { id } = await queue.enqueue('hold', null)
    await ends(queue, id, 'running')
    const stopped = queue.stop()
    gate.open()
    await stopped
    expect(await stateOf(queue, id)).toBe('succeeded')
  })

  it('begins nothing of a type that is paused', async () => {
    const { queue } = await openStarted({ one: () => {}, other: () => {} })
    queue.pause('one')
    const paused = await queue.enqueue('one', null)
    const other = await queue.enqueue('other', null)
    await ends(queue, other.id, 'succeeded')
    expect(await stateOf(queue, paused.id)).toBe('queued')
    expect(() => queue.pause('nobody')).toThrow(expect.objectContaining({ code: 'UNKNOWN_TASK_TYPE' }) as Error)
    queue.resume('one')
    await ends(queue, paused.id, 'succeeded')
  })

  it('keeps to the concurrency of a type beside that of the queue', async () => {
    let running = 0
    let most = 0
    const queue = openQueue(await open(), { concurrency: 4 })
    queue.register('narrow', { concurrency: 2 }, async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
    })
    queue.start()
    const tasks = await queue.enqueueMany(
      'narrow',
      Array.from({ length: 12 }, (_, payload) => ({ payload })),
    )
    for (const { id } of tasks) await ends(queue, id, 'succeeded')
    expect(most).toBe(2)
  })

  it('lists newest first, page by page, also while tasks are removed', async () => {
    const queue = openQueue(await open())
    queue.register('note', () => {})
    const tasks = await queue.enqueueMany(
      'note',
      Array.from({ length: 7 }, (_, payload) => ({ payload })),
    )
    const newestFirst = tasks.map(({ id }) => id).reverse()
    expect((await queue.list()).map(({ id }) => id)).toEqual(newestFirst)
    const page = await queue.list({ limit: 3 })
    const last = page[2]
    await queue.remove(last?.id ?? '')
    const rest = await queue.list({ limit: 10, cursor: last })
    expect([...page, ...rest].map(({ id }) => id)).toEqual(newestFirst)
    await expect(queue.list({ state: 'lost' as 'dead' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('shares tasks with other queues on its storage, each to one of them', async () => {
    const storage = await open()
    const seen: unknown[] = []
    const queues = Array.from({ length: 3 }, () => openQueue(storage, { concurrency: 3 }))
    for (const queue of queues) queue.register('note', (payload) => seen.push(payload))
    const [first] = queues as [TaskQueue]
    const payloads = Array.from({ length: 60 }, (_, n) => n)
    await first.enqueueMany(
      'note',
      payloads.map((payload) => ({ payload })),
    )
    for (const queue of queues) queue.start()
    await expect.poll(() => first.countsByState()).toEqual({ ...NONE, succeeded: 60 })
    expect(seen.sort((a, b) => Number(a) - Number(b))).toEqual(payloads)
  })

  it('leaves the runs of jobs alone, as jobs leave its tasks', async () => {
    const storage = await open()
    const durably = createDurably({ storage: withoutClose(storage), logger: null, pollingInterval: 50 })
    const job = durably.defineJob({ name: 'note', input: z.string() }, async () => {})
    const queue = openQueue(storage)
    queue.register('note', () => {})
    const run = await job.trigger('a run')
    const task = await queue.enqueue('note', 'a task')
    expect(await queue.list()).toHaveLength(1)
    expect(await queue.status(run.id)).toBe(null)
    await expect(queue.remove(run.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await durably.runUntilIdle()
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed' })
    expect(await stateOf(queue, task.id)).toBe('queued')
    await queue.runUntilIdle()
    expect(await stateOf(queue, task.id)).toBe('succeeded')
    await queue.purge()
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed' })
    await durably.close()
  })
})

/** For a second instance, which must not close what belongs to the first. */
function withoutClose(storage: Storage): Storage {
  return { ...storage, close: async () => {} }
}

describe.each(DATABASES.filter(({ name }) => name !== 'libsql()'))('a queue on $name', ({ dialect }) => {
  it('enqueues together with rows of the application, or not at all', async () => {
    const durably = openOn(dialect(newFile()))
    const queue = openQueue(durably.storage)
    queue.register('note', () => {})
    await queue.migrate()
    const enqueue = (payload: unknown) =>
      durably.transaction(async (transaction) => {
        await queue.enqueue('note', payload, { transaction })
        if (payload === 'no') throw new Error('never mind')
      })
    await expect(enqueue('no')).rejects.toThrow('never mind')
    await enqueue('yes')
    expect(await queue.list()).toMatchObject([{ payload: 'yes', state: 'queued' }])
  })
})
