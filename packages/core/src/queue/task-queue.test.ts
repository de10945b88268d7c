import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { settled } from '../testing/fake-clock'
import {
  anything,
  type Bench,
  createBench,
  createFaulty,
  createGate,
  createMortal,
  wrapStorage,
} from '../testing/test-bench'
import { type RetryPolicy, type Storage, StorageError } from '../index'
import { createTaskQueue, TASK_EVENT_TYPES, type TaskEvent, type TaskQueue, type TaskQueueOptions } from './index'

let bench: Bench
const opened: TaskQueue[] = []

beforeEach(() => {
  bench = createBench()
})

afterEach(async () => {
  const stopping = Promise.all(opened.splice(0).map((queue) => queue.stop({ timeout: 0 })))
  await bench.clock.advance(30_000)
  await stopping
  await bench.close()
})

function open(options: Partial<TaskQueueOptions> = {}, storage: Storage = bench.storage): TaskQueue {
  const environment = { clock: bench.clock, random: () => 0.5 }
  const queue = createTaskQueue({ storage, logger: null, environment, ...options })
  opened.push(queue)
  return queue
}

function recordEvents(queue: TaskQueue): TaskEvent[] {
  const events: TaskEvent[] = []
  for (const type of TASK_EVENT_TYPES) queue.on(type, (event) => events.push(event))
  return events
}

/** One process after another begins the only task, and dies with it. */
async function attemptsOfMortals({ maxAttempts, lives, aliveMs }: Record<'maxAttempts' | 'lives' | 'aliveMs', number>) {
  const attempts: number[] = []
  for (let life = 1; life <= lives; life++) {
    const mortal = createMortal(bench.storage)
    const queue = open({ retry: { maxAttempts } }, mortal.storage)
    queue.register('heavy', (_payload, { attempt }) => {
      attempts.push(attempt)
      return new Promise(() => {})
    })
    queue.start()
    if (life === 1) await queue.enqueue('heavy', null)
    await bench.clock.advance(aliveMs)
    mortal.kill()
    await bench.clock.advance(40_000)
  }
  return attempts
}

/** Another process recovers the only task: nobody here is told. */
async function recoverElsewhere(): Promise<void> {
  const [run] = await bench.storage.getRuns({})
  await bench.storage.recover({
    ...{ deadWorkerId: run?.ownerId ?? null, held: [], maxCrashes: 5, jitter: 0, limit: 1 },
    crashLimit: { error: '', detail: { name: '' } },
    events: { pending: [], cancelled: [], failed: [] },
  })
}

const fail = () => Promise.reject(new Error('no luck'))

describe('retries', () => {
  it('that begin before the answer to the end before them comes have their events all the same', async () => {
    const answered = createGate()
    let commits = 0
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      const answer = await call()
      if (operation !== 'commit') return answer
      commits += 1
      if (commits === 1) await answered.opened
      return answer
    })
    const queue = open({ concurrency: 2, retry: { maxAttempts: 2, delay: 0 } }, storage)
    const events = recordEvents(queue)
    const attempts: number[] = []
    queue.register('broken', (_payload, { attempt }) => {
      attempts.push(attempt)
      return fail()
    })
    queue.start()
    await queue.enqueue('broken', null)
    await bench.clock.advance(2000)
    expect(attempts).toEqual([1, 2])
    answered.open()
    await bench.clock.advance(2000)
    const failed = events.filter(({ type }) => type === 'failed')
    expect(failed).toMatchObject([{ attempt: 1 }, { attempt: 2 }])
    expect(events.at(-1)).toMatchObject({ type: 'dead', attempts: 2 })
  })

  it.each([
    ['enqueue', 'comes to the queue'],
    ['command', 'is redriven'],
  ])('have their events also when they begin before the answer that their task %s', async (held) => {
    let [answered, ended] = [createGate(), createGate()]
    answered.open()
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      const answer = await call()
      if (operation === held) await answered.opened
      return answer
    })
    const queue = open({ retry: { maxAttempts: 1 } }, storage)
    const events = recordEvents(queue)
    queue.register('broken', async () => {
      await ended.opened
      throw new Error('no luck')
    })
    queue.start()
    const put = async (call: () => Promise<unknown>) => {
      answered = createGate()
      ended = createGate()
      const told = call()
      await bench.clock.advance(5000)
      answered.open()
      await told
      ended.open()
      await bench.clock.advance(5000)
    }
    await put(() => queue.enqueue('broken', null))
    await put(() => queue.redrive({ type: 'broken' }))
    const failed = events.filter(({ type }) => type === 'failed' || type === 'dead')
    const order = events.map(({ type }) => type)
    const from = held === 'enqueue' ? 0 : order.indexOf('dead') + 1
    expect(order.slice(from, from + 2)).toEqual(['started', 'enqueued'])
    const once = [
      { type: 'failed', attempt: 1 },
      { type: 'dead', attempts: 1 },
    ]
    expect(failed).toMatchObject([...once, ...once])
  })

  it('have their events also when they begin before the answer that their task was recovered', async () => {
    const mortal = createMortal(bench.storage)
    const dying = open({}, mortal.storage)
    dying.register('broken', () => new Promise(() => {}))
    dying.start()
    await dying.enqueue('broken', null)
    await bench.clock.advance(500)
    mortal.kill()
    const [answered, ended] = [createGate(), createGate()]
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      const before = await bench.storage.counts({})
      const answer = await call()
      if (operation === 'recover' && before.running > 0) await answered.opened
      return answer
    })
    const queue = open({ retry: { maxAttempts: 2 } }, storage)
    const events = recordEvents(queue)
    queue.register('broken', async () => {
      await ended.opened
      throw new Error('no luck')
    })
    queue.start()
    for (let seconds = 0; events.length === 0 && seconds < 100; seconds++) await bench.clock.advance(1000)
    answered.open()
    await bench.clock.advance(1000)
    ended.open()
    await bench.clock.advance(5000)
    expect(events.map(({ type }) => type)).toEqual(['started', 'enqueued', 'failed', 'dead'])
  })

  it('have their events also when another process redrives their task before its death is told', async () => {
    const [answered, ended] = [createGate(), createGate()]
    let isFirst = true
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      const answer = await call()
      if (operation !== 'commit' || !isFirst) return answer
      isFirst = false
      await answered.opened
      return answer
    })
    const queue = open({ concurrency: 2, retry: { maxAttempts: 1 } }, storage)
    const events = recordEvents(queue)
    let begun = 0
    queue.register('broken', async () => {
      if (++begun === 2) await ended.opened
      throw new Error('no luck')
    })
    queue.start()
    await queue.enqueue('broken', null)
    await bench.clock.advance(1000)
    const elsewhere = open()
    elsewhere.declare('broken')
    await elsewhere.redrive({ type: 'broken' })
    await bench.clock.advance(2000)
    expect(begun).toBe(2)
    answered.open()
    await bench.clock.advance(1000)
    ended.open()
    await bench.clock.advance(1000)
    const order = events.map(({ type }) => type)
    expect(order).toEqual(['enqueued', 'started', 'started', 'failed', 'dead', 'failed', 'dead'])
  })

  it('have their events also when they begin before the one before them is told that its lease was lost', async () => {
    const [sent, ended] = [createGate(), createGate()]
    let isFirst = true
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      if (operation !== 'commit' || !isFirst) return call()
      isFirst = false
      await sent.opened
      return call()
    })
    const queue = open({ concurrency: 2, retry: { maxAttempts: 3, delay: 0 } }, storage)
    const events = recordEvents(queue)
    const attempts: number[] = []
    queue.register('broken', async (_payload, { attempt }) => {
      attempts.push(attempt)
      if (attempts.length === 2) await ended.opened
      throw new Error('no luck')
    })
    queue.start()
    await queue.enqueue('broken', null)
    await bench.clock.advance(1000)
    await recoverElsewhere()
    await bench.clock.advance(2000)
    expect(attempts.length).toBe(2)
    sent.open()
    await bench.clock.advance(1000)
    ended.open()
    await bench.clock.advance(2000)
    const failed = events.filter(({ type }) => type === 'failed')
    expect(failed).toMatchObject([{ attempt: attempts[1] }, { attempt: attempts[2] }])
  })

  it('have events of their own after an attempt whose end the database would never take', async () => {
    let refuses = true
    const storage = wrapStorage(bench.storage, (operation, call) => {
      if (operation === 'commit' && refuses) throw new StorageError('STORAGE_REJECTED', 'Never.')
      return call()
    })
    const queue = open({ retry: { maxAttempts: 2, delay: 0 } }, storage)
    const events = recordEvents(queue)
    queue.register('broken', fail)
    queue.start()
    await queue.enqueue('broken', null)
    await bench.clock.advance(500)
    refuses = false
    await recoverElsewhere()
    await bench.clock.advance(5000)
    expect(events.filter(({ type }) => type === 'failed')).toMatchObject([{ attempt: 2 }])
  })

  it('come at random up to 1 s, 2 s, 4 s … unless the queue or the type says otherwise', async () => {
    const queue = open()
    const backoffs: Record<string, number[]> = { usual: [], own: [] }
    queue.on('retry_scheduled', ({ taskType, backoffMs }) => backoffs[taskType]?.push(backoffMs))
    queue.register('usual', fail)
    queue.register('own', { retry: { maxAttempts: 3, delay: 7000 } }, fail)
    queue.start()
    await queue.enqueue('usual', null)
    await queue.enqueue('own', null)
    await bench.clock.advance(60_000)
    expect(backoffs).toEqual({ usual: [500, 1000, 2000, 4000], own: [7000, 7000] })
    expect(await queue.countsByState()).toMatchObject({ dead: 2 })
  })

  it('begin when they are due, to the millisecond, and not before', async () => {
    const queue = open({ retry: { maxAttempts: 5, delay: 123_456 } })
    const begun: number[] = []
    queue.register('flaky', () => {
      begun.push(bench.clock.monotonic())
      return fail()
    })
    queue.start()
    const { id } = await queue.enqueue('flaky', null)
    await bench.clock.advance(123_455)
    expect(begun).toHaveLength(1)
    expect(await queue.status(id)).toMatchObject({ state: 'retry_scheduled' })
    await bench.clock.advance(1)
    expect(begun).toEqual([0, 123_456])
  })

  it('have their time also when it is that of the task itself', async () => {
    const queue = open({ retry: { maxAttempts: 5, delay: 0 } })
    queue.register('flaky', () => {
      queue.pause()
      return fail()
    })
    queue.start()
    const { id, createdAt } = await queue.enqueue('flaky', null)
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'retry_scheduled', nextRunAt: createdAt })
  })
})

describe('a worker that dies', () => {
  it('costs the task an attempt, and never gives it more than maxAttempts', async () => {
    const attempts = await attemptsOfMortals({ maxAttempts: 3, lives: 4, aliveMs: 1000 })
    const queue = open({ retry: { maxAttempts: 3 } })
    const events = recordEvents(queue)
    queue.register('heavy', () => attempts.push(Number.NaN))
    queue.start()
    await bench.clock.advance(60_000)
    expect(attempts).toEqual([1, 2, 3])
    expect(await queue.list()).toMatchObject([
      { state: 'dead', attempts: 3, lastError: expect.stringContaining('lost') },
    ])
    expect(events.map(({ type }) => type)).not.toContain('started')
  })

  it('while it records that no attempt is left shows none more than there are', async () => {
    const heavy = () => new Promise(() => {})
    const first = createMortal(bench.storage)
    const dying = open({ retry: { maxAttempts: 1 } }, first.storage)
    dying.register('heavy', heavy)
    dying.start()
    const { id } = await dying.enqueue('heavy', null)
    // It is claimed after it is stored, not before.
    await settled()
    first.kill()
    const second = createMortal(bench.storage)
    const mute = wrapStorage(second.storage, (operation, call) => {
      if (operation === 'commit') second.kill()
      return call()
    })
    const burying = open({ retry: { maxAttempts: 1 } }, mute)
    burying.register('heavy', heavy)
    burying.start()
    const queue = open({ retry: { maxAttempts: 1 } })
    queue.register('heavy', heavy)
    const events = recordEvents(queue)
    await bench.clock.advance(40_000)
    expect(await queue.status(id)).toMatchObject({ state: 'running', attempts: 1 })
    queue.start()
    await bench.clock.advance(60_000)
    expect(await queue.status(id)).toMatchObject({ state: 'dead', attempts: 1 })
    expect(events).toMatchObject([{ cause: 'recovered' }, { type: 'dead', attempts: 1 }])
  })

  it('leaves the task queued again, which says so', async () => {
    const mortal = createMortal(bench.storage)
    const dying = open({}, mortal.storage)
    dying.register('heavy', () => new Promise(() => {}))
    dying.start()
    const { id } = await dying.enqueue('heavy', null)
    await bench.clock.advance(1000)
    mortal.kill()
    const queue = open()
    queue.register('heavy', () => {})
    queue.pause()
    const events = recordEvents(queue)
    queue.start()
    await bench.clock.advance(40_000)
    expect(await queue.status(id)).toMatchObject({ state: 'queued', attempts: 1, lastError: 'Its worker was lost.' })
    expect(events).toMatchObject([{ type: 'enqueued', taskId: id, cause: 'recovered' }])
    queue.resume()
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded', attempts: 2 })
  })

  it('that was only away records nothing when its handler throws at last', async () => {
    const gate = createGate()
    const faulty = createFaulty(bench.storage)
    const away = open({}, faulty.storage)
    const said = recordEvents(away)
    away.register('slow', () => gate.opened)
    away.start()
    const { id } = await away.enqueue('slow', null)
    await settled()
    faulty.fail()
    const queue = open()
    queue.register('slow', () => {})
    queue.start()
    await bench.clock.advance(40_000)
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded', attempts: 2 })
    faulty.heal()
    gate.fail(new Error('too late'))
    await bench.clock.advance(10_000)
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded', attempts: 2, lastError: null })
    expect(said.map(({ type }) => type)).toEqual(['enqueued', 'started'])
  })
})

describe('a rate limit', () => {
  it('lets so many tasks of a type begin in any stretch of time', async () => {
    const queue = open({ concurrency: 10 })
    const begun: number[] = []
    queue.register('mail', { rateLimit: { max: 3, per: 10_000 } }, () => begun.push(bench.clock.monotonic()))
    queue.start()
    await queue.enqueueMany(
      'mail',
      Array.from({ length: 7 }, () => ({ payload: null })),
    )
    await bench.clock.advance(60_000)
    expect(begun).toEqual([0, 0, 0, 10_000, 10_000, 10_000, 20_000])
  })
})

describe('a time-out', () => {
  it('is called off when the handler has settled', async () => {
    const queue = open()
    queue.register('quick', { timeout: 3_600_000 }, () => {})
    await queue.enqueue('quick', null)
    await queue.runUntilIdle()
    expect(bench.clock.pendingTimers()).toBe(0)
  })
})

describe('what is kept', () => {
  it('are succeeded tasks for an hour and dead ones for a week, unless the queue says otherwise', async () => {
    const queue = open({ concurrency: 50, retry: { maxAttempts: 1 } })
    queue.register('pass', () => {})
    queue.register('die', fail)
    const sweep = () => queue.runUntilIdle()
    await queue.enqueueMany(
      'pass',
      Array.from({ length: 1002 }, () => ({ payload: null })),
    )
    await queue.enqueue('die', null)
    await sweep()
    expect(await queue.countsByState()).toMatchObject({ succeeded: 1000, dead: 1 })
    await bench.clock.advance(3_500_000)
    await sweep()
    expect(await queue.countsByState()).toMatchObject({ succeeded: 1000, dead: 1 })
    await bench.clock.advance(200_000)
    await sweep()
    expect(await queue.countsByState()).toMatchObject({ succeeded: 0, dead: 1 })
    await bench.clock.advance(7 * 24 * 3_600_000)
    await sweep()
    expect(await queue.countsByState()).toMatchObject({ succeeded: 0, dead: 0 })
  })

  it('goes when it is too old, or more than its state keeps, and the counts say so', async () => {
    const queue = open({ keep: { succeeded: { age: 50_000, count: 2 }, dead: { age: Number.POSITIVE_INFINITY } } })
    queue.register('pass', () => {})
    queue.register('die', { retry: { maxAttempts: 1 } }, fail)
    queue.start()
    for (let n = 0; n < 5; n++) await queue.enqueue('pass', n)
    const dead = await queue.enqueue('die', null)
    await bench.clock.advance(6000)
    expect(await queue.countsByState()).toMatchObject({ succeeded: 2, dead: 1 })
    expect((await queue.list({ state: 'succeeded' })).map(({ payload }) => payload)).toEqual([4, 3])
    await bench.clock.advance(60_000)
    expect(await queue.countsByState()).toEqual({ queued: 0, running: 0, retry_scheduled: 0, succeeded: 0, dead: 1 })
    await bench.clock.advance(600_000)
    expect(await queue.list()).toMatchObject([{ id: dead.id }])
  })

  it('is no more than a batch beyond its count, without waiting for the next look', async () => {
    const queue = open({ concurrency: 100, keep: { succeeded: { count: 10 } } })
    queue.register('pass', () => {})
    queue.start()
    await queue.enqueueMany(
      'pass',
      Array.from({ length: 2500 }, () => ({ payload: null })),
    )
    while ((await queue.countsByState()).queued > 0) await settled()
    expect((await queue.countsByState()).succeeded).toBeLessThanOrEqual(1010)
  })

  it('is looked after only while the queue is started', async () => {
    const queue = open({ keep: { succeeded: { count: 0 } } })
    queue.register('pass', () => {})
    queue.start()
    await queue.enqueue('pass', null)
    await settled()
    await queue.stop()
    await bench.clock.advance(86_400_000)
    expect(await queue.countsByState()).toMatchObject({ succeeded: 1 })
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('survives trouble of the storage', async () => {
    const faulty = createFaulty(bench.storage)
    const lines: string[] = []
    const logger = { info: () => {}, warn: () => {}, error: (message: string) => lines.push(message) }
    const queue = open({ logger, keep: { succeeded: { count: 0 } } }, faulty.storage)
    queue.register('pass', () => {})
    queue.start()
    await queue.enqueue('pass', null)
    await settled()
    faulty.fail('purge')
    await bench.clock.advance(60_000)
    expect(lines).toEqual(['durably: retention:'])
    faulty.heal()
    await bench.clock.advance(60_000)
    expect(await queue.countsByState()).toMatchObject({ succeeded: 0 })
  })
})

describe('a queue whose database is away at first', () => {
  it('starts when it is there', async () => {
    const faulty = createFaulty(bench.storage)
    faulty.fail('migrate')
    const queue = open({}, faulty.storage)
    queue.register('pass', () => {})
    queue.start()
    await expect(queue.enqueue('pass', null)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await bench.clock.advance(5000)
    faulty.heal()
    await bench.clock.advance(1000)
    const { id } = await queue.enqueue('pass', null)
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded' })
  })

  it('does not start when it was stopped meanwhile', async () => {
    const faulty = createFaulty(bench.storage)
    faulty.fail('migrate')
    const queue = open({}, faulty.storage)
    queue.register('pass', () => {})
    queue.start()
    await settled()
    await queue.stop()
    faulty.heal()
    await bench.clock.advance(5000)
    expect(bench.clock.pendingTimers()).toBe(0)
  })
})

describe('the logger', () => {
  it('gets one line for each event, and those of handlers', async () => {
    const lines: unknown[][] = []
    const log = (level: string) => (message: string, fields: object) => void lines.push([level, message, fields])
    const queue = open({
      logger: { info: log('info'), warn: log('warn'), error: log('error') },
      retry: { maxAttempts: 5, delay: 1000 },
    })
    queue.register('note', { retry: { maxAttempts: 2, delay: 1000 } }, (_payload, ctx) => {
      ctx.log.info('looking', { at: 'it' })
      return fail()
    })
    queue.start()
    const { id } = await queue.enqueue('note', null)
    await bench.clock.advance(10_000)
    const ofTask = { taskId: id, taskType: 'note', timestamp: expect.any(String) as string }
    expect(lines).toEqual([
      ['info', 'task enqueued', { event: 'enqueued', ...ofTask, cause: 'new' }],
      ['info', 'task started', { event: 'started', ...ofTask, attempt: 1 }],
      ['info', 'looking', { taskId: id, data: { at: 'it' } }],
      ['warn', 'task failed', { event: 'failed', ...ofTask, attempt: 1, error: 'no luck', durationMs: 0 }],
      [
        'warn',
        'task retry_scheduled',
        {
          event: 'retry_scheduled',
          ...ofTask,
          attempt: 1,
          error: 'no luck',
          backoffMs: 1000,
          nextRunAt: '2030-01-01T00:00:01.000Z',
        },
      ],
      ['info', 'task started', { event: 'started', ...ofTask, attempt: 2 }],
      ['info', 'looking', { taskId: id, data: { at: 'it' } }],
      ['warn', 'task failed', { event: 'failed', ...ofTask, attempt: 2, error: 'no luck', durationMs: 0 }],
      ['error', 'task dead', { event: 'dead', ...ofTask, attempts: 2, error: 'no luck' }],
    ])
  })
})

describe('a listener', () => {
  it('that throws or rejects disturbs nobody, and is reported', async () => {
    const errors: unknown[] = []
    const logger = { info: () => {}, warn: () => {}, error: (_message: string, error: object) => errors.push(error) }
    const queue = open({ logger })
    const heard: string[] = []
    queue.on('started', () => {
      throw new Error('thrown')
    })
    queue.on('started', () => Promise.reject(new Error('rejected')) as never)
    const off = queue.on('started', ({ taskType }) => heard.push(taskType))
    queue.register('pass', () => {})
    queue.start()
    const { id } = await queue.enqueue('pass', null)
    await settled()
    off()
    await queue.enqueue('pass', null)
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded' })
    expect(heard).toEqual(['pass'])
    expect(errors).toMatchObject([
      { message: 'thrown' },
      { message: 'rejected' },
      { message: 'thrown' },
      { message: 'rejected' },
    ])
    expect(() => queue.on('lost' as 'dead', () => {})).toThrow('There is no event "lost" of a task.')
  })
})

describe('bad options', () => {
  it.each<[string, TaskQueueOptions, string]>([
    ['concurrency', { concurrency: 0 }, 'concurrency must be an integer from 1'],
    ['keep.succeeded.age', { keep: { succeeded: { age: -1 } } }, 'keep.succeeded.age must be milliseconds from 0'],
    ['keep.dead.age', { keep: { dead: { age: '5' as never } } }, 'keep.dead.age must be milliseconds from 0, not 5'],
    ['logger', { logger: 5 as never }, 'logger must have a method error()'],
    ['keep.dead.count', { keep: { dead: { count: 1.5 } } }, 'keep.dead.count must be an integer from 0'],
  ])('are refused when the queue is made: %s', (_name, options, message) => {
    expect(() => createTaskQueue(options)).toThrow(message)
  })

  it('of a task are refused when it is enqueued', async () => {
    const queue = open()
    queue.register('a', () => {})
    await expect(queue.enqueue('a', {}, { dedupeKey: '' })).rejects.toThrow('dedupeKey must not be empty')
  })

  it('of a handler are refused when it is registered', () => {
    const queue = open()
    const register = queue.register as (...form: unknown[]) => void
    expect(() => register('', () => {})).toThrow('a task type that is not empty')
    expect(() => register('a')).toThrow('needs a function')
    expect(() => register(null)).toThrow('a task type')
    expect(() => register('a', { timeout: 0 }, () => {})).toThrow('timeout of "a" must be more than 0 ms')
    expect(() => register('a', { concurrency: 0 }, () => {})).toThrow('concurrency')
    expect(() => register('a', { retry: { maxAttempts: 0 } }, () => {})).toThrow('maxAttempts')
    expect(() => register('a', { retry: { maxAttempts: 5, delay: -5 } }, () => {})).toThrow('retry')
    expect(() => register('a', { schema: {} }, () => {})).toThrow('schema')
    queue.register('a', () => {})
    expect(() => open({ retry: { maxAttempts: 0 } }).register('a', () => {})).toThrow(
      'maxAttempts must be an integer from 1',
    )
    expect(() => open({ retry: { maxAttempts: 5, delay: -1 } }).register('a', () => {})).toThrow(
      'delay of retry must be a number from 0',
    )
  })
})

describe('a storage that is away longer than a lease, again and again', () => {
  it('costs a task an attempt each time, and no more than maxAttempts', async () => {
    const faulty = createFaulty(bench.storage)
    const queue = open({ retry: { maxAttempts: 2 } }, faulty.storage)
    const attempts: number[] = []
    queue.register('long', (_payload, { attempt }) => {
      attempts.push(attempt)
      return new Promise(() => {})
    })
    queue.start()
    const { id } = await queue.enqueue('long', null)
    for (let outage = 0; outage < 6; outage++) {
      await bench.clock.advance(5000)
      faulty.fail()
      await bench.clock.advance(28_000)
      faulty.heal()
      await bench.clock.advance(60_000)
    }
    expect(attempts).toEqual([1, 2])
    expect(await queue.status(id)).toMatchObject({ state: 'dead', attempts: 2 })
  })
})

describe('a type that is only declared', () => {
  const { '~standard': standard } = anything
  const isMail = {
    '~standard': {
      ...standard,
      validate: (value: unknown) =>
        typeof value === 'string' ? { value: value.trim() } : { issues: [{ message: 'no address' }] },
    },
  }

  it('is enqueued, watched and changed here, and executed where its handler is', async () => {
    const sender = open()
    sender.declare('mail', { schema: isMail as never, retry: { maxAttempts: 2 } })
    await expect(sender.enqueue('mail', 5)).rejects.toMatchObject({ code: 'VALIDATION' })
    const { id } = await sender.enqueue('mail', ' ann ')
    sender.start()
    await bench.clock.advance(60_000)
    expect(await sender.status(id)).toMatchObject({ state: 'queued', payload: 'ann', maxAttempts: 2 })
    expect(await sender.runUntilIdle()).toMatchObject({ ran: 0 })
    const worker = open()
    const done: unknown[] = []
    worker.register('mail', (payload) => void done.push(payload))
    worker.start()
    await bench.clock.advance(5000)
    expect(done).toEqual(['ann'])
    expect(await sender.countsByState({ type: 'mail' })).toMatchObject({ succeeded: 1 })
    expect(await sender.list({ type: 'mail' })).toMatchObject([{ id, state: 'succeeded' }])
    expect(await sender.purge({ type: 'mail' })).toBe(1)
  })

  it('keeps its ended tasks as long as the queue with the handler says', async () => {
    const worker = open()
    worker.register('mail', () => {})
    const sender = open({ keep: { succeeded: { age: 0, count: 0 } } })
    sender.declare('mail')
    sender.register('other', () => {})
    const { id } = await sender.enqueue('mail', 1)
    await worker.runUntilIdle()
    await sender.runUntilIdle()
    expect(await sender.status(id)).toMatchObject({ state: 'succeeded' })
  })

  it('may get a handler later, or have one already', async () => {
    const queue = open()
    const done: unknown[] = []
    queue.declare('mail')
    queue.pause('mail')
    queue.resume('mail')
    queue.register('mail', (payload) => void done.push(payload))
    queue.register('note', (payload) => void done.push(payload))
    queue.declare('note', { retry: { maxAttempts: 9 } })
    await queue.enqueue('mail', 1)
    expect(await queue.enqueue('note', 2)).toMatchObject({ maxAttempts: 5 })
    await queue.runUntilIdle()
    expect(done).toEqual([1, 2])
    expect(() => queue.declare('mail')).toThrow('Tasks of type "mail" are declared already.')
    expect(() => queue.declare('')).toThrow('declare() needs a task type that is not empty.')
  })

  it('is what an unknown type has to be, to be enqueued', async () => {
    await expect(open().enqueue('mail', 1)).rejects.toThrow('To enqueue them, declare() does.')
  })
})

describe('an option that nobody knows', () => {
  const wrong = (value: unknown): never => value as never

  it.each<[string, (queue: TaskQueue) => unknown, string]>([
    ['a queue', () => open(wrong({ maxAttempt: 3 })), 'createTaskQueue() knows no option "maxAttempt".'],
    ['its policy', () => open({ retry: wrong({ maxAttempt: 3 }) }), 'Did you mean "maxAttempts"?'],
    ['a policy that is a number', () => open({ retry: wrong(60_000) }), 'takes its options as an object, not 60000.'],
    ['keep', () => open({ keep: wrong({ succeded: {} }) }), 'Did you mean "succeeded"?'],
    ['a limit', () => open({ keep: { dead: wrong({ cuont: 1 }) } }), 'Did you mean "count"?'],
    ['a type', (queue) => queue.register('a', wrong({ timout: 1 }), () => {}), 'Did you mean "timeout"?'],
    ['a handler', (queue) => queue.register(wrong({ taskType: 'a', retr: 1, execute() {} })), 'Did you mean "retry"?'],
    ['a declaration', (queue) => queue.declare('a', wrong({ shema: 1 })), 'Did you mean "schema"?'],
    ['crashes', () => open({ retry: { maxAttempts: 2, countCrashes: false } }), 'crashes count as attempts'],
    ['a time without end', (queue) => queue.register('a', { timeout: Number.POSITIVE_INFINITY }, () => {}), 'timeout'],
  ])('of %s is an error that names the nearest one', (_of, call, message) => {
    expect(() => call(open())).toThrow(message)
  })

  it.each<[string, (queue: TaskQueue) => Promise<unknown>, string]>([
    ['enqueue', (queue) => queue.enqueue('mail', 1, wrong({ dedupekey: 'k' })), 'Did you mean "dedupeKey"?'],
    ['list', (queue) => queue.list(wrong({ typ: 'mail' })), 'Did you mean "type"?'],
    ['countsByState', (queue) => queue.countsByState(wrong({ typ: 'mail' })), 'Did you mean "type"?'],
    ['purge', (queue) => queue.purge(wrong({ olderthan: 1 })), 'Did you mean "olderThan"?'],
    ['redrive', (queue) => queue.redrive(wrong({ state: 'dead' })), 'There are type.'],
    ['redrive of a list', (queue) => queue.redrive(wrong([])), 'not a value of type Array.'],
    ['purge of a list', (queue) => queue.purge(wrong([])), 'not a value of type Array.'],
    ['stop', (queue) => queue.stop(wrong({ timout: 1 })), 'Did you mean "timeout"?'],
    ['a stop with nothing', (queue) => queue.stop(wrong(null)), 'stop() takes its options as an object, not null.'],
    ['a stop for ever', (queue) => queue.stop({ timeout: Number.POSITIVE_INFINITY }), 'milliseconds from 0'],
    ['runUntilIdle', (queue) => queue.runUntilIdle(wrong({ budget: 1 })), 'Did you mean "budgetMs"?'],
  ])('of %s is one, and nothing happens', async (_of, call, message) => {
    const queue = open()
    queue.declare('mail')
    await expect(call(queue)).rejects.toThrow(message)
    expect(await queue.countsByState()).toMatchObject({ queued: 0 })
  })

  it.each([
    ['maxAttempts', 2, 'The handler of "mail" takes no "maxAttempts": give it retry: { maxAttempts }.'],
    ['retries', 2, 'The handler of "mail" takes no "retries": give it retry: { maxAttempts }.'],
    ['priority', 1, 'The handler of "mail" knows no option "priority".'],
    ['backoffMs', undefined, 'The handler of "mail" knows no option "backoffMs".'],
  ])('of an object that is the handler is one: %s', (name, value, message) => {
    const queue = open()
    expect(() => queue.register(wrong({ taskType: 'mail', execute() {}, [name]: value }))).toThrow(message)
    expect(() => queue.declare('mail')).not.toThrow()
  })

  it('is no method of an object that is the handler', async () => {
    const queue = open()
    const done: unknown[] = []
    const handler = {
      taskType: 'mail',
      send: (to: unknown) => void done.push(to),
      execute(to: unknown) {
        this.send(to)
      },
    }
    queue.register(handler)
    await queue.enqueue('mail', 'ann')
    await queue.runUntilIdle()
    expect(done).toEqual(['ann'])
  })

  it('is no matter of durably in an instance of a class that is the handler', async () => {
    class Mailer {
      readonly taskType = 'mail'
      readonly sent: unknown[] = []
      readonly transport = 'smtp'
      execute(payload: unknown) {
        this.sent.push(payload)
      }
    }
    class Twice extends Mailer {
      readonly maxAttempts = 2
    }
    const [queue, mailer] = [open(), new Mailer()]
    expect(() => queue.register(new Twice())).toThrow('takes no "maxAttempts"')
    queue.register(mailer)
    await queue.enqueue('mail', 'ann')
    await queue.runUntilIdle()
    expect(mailer.sent).toEqual(['ann'])
  })
})

describe('a retry in the far future', () => {
  it.each<[string, RetryPolicy['delay']]>([
    ['a number', 1e16],
    ['a function', () => 1e18],
    ['one that grows', { from: 1e17, factor: 10, upTo: Number.MAX_VALUE }],
  ])('comes within a hundred years: %s', async (_name, delay) => {
    const queue = open({ retry: { maxAttempts: 5, delay } })
    queue.register('flaky', fail)
    queue.start()
    const { id } = await queue.enqueue('flaky', null)
    await settled()
    expect(await queue.status(id)).toMatchObject({
      state: 'retry_scheduled',
      nextRunAt: expect.stringMatching(/^21[23]\d-/),
    })
  })
})

describe('crashes', () => {
  it('end a task of more than five attempts by its attempts', async () => {
    const attempts = await attemptsOfMortals({ maxAttempts: 8, lives: 9, aliveMs: 62_000 })
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })
})

describe('two queues that know a type with different limits', () => {
  it('leave a task its own last error', async () => {
    const generous = open({ retry: { maxAttempts: 5, delay: 1000 } })
    generous.register('flaky', fail)
    generous.start()
    const { id } = await generous.enqueue('flaky', null)
    await bench.clock.advance(2500)
    await generous.stop()
    const strict = open({ retry: { maxAttempts: 2 } })
    strict.register('flaky', () => {})
    strict.start()
    await bench.clock.advance(5000)
    expect(await strict.status(id)).toMatchObject({ state: 'dead', lastError: 'no luck' })
  })
})

describe('stopping', () => {
  it('accepts what the tasks in progress lead to', async () => {
    const gate = createGate()
    const queue = open()
    queue.register('first', async () => {
      await gate.opened
      await queue.enqueue('second', null)
    })
    queue.register('second', () => {})
    queue.start()
    const { id } = await queue.enqueue('first', null)
    await settled()
    const stopped = queue.stop()
    gate.open()
    await stopped
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded' })
    expect(await queue.countsByState()).toMatchObject({ queued: 1 })
    await expect(queue.enqueue('second', null)).rejects.toMatchObject({ code: 'QUEUE_STOPPED' })
  })

  it('by a handler of its own is refused, and changes nothing', async () => {
    const queue = open({ retry: { maxAttempts: 1 } })
    queue.register('await', () => queue.stop({ timeout: 1000 }))
    queue.register('pass', () => void queue.stop())
    queue.start()
    const { id } = await queue.enqueue('await', null)
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'dead', lastError: expect.stringContaining('stop()') })
    const other = await queue.enqueue('pass', null)
    await settled()
    expect(await queue.status(other.id)).toMatchObject({ state: 'succeeded' })
    await queue.stop()
    expect(await queue.countsByState()).toMatchObject({ queued: 0, running: 0 })
  })

  it('with a time-out that is none changes nothing', async () => {
    const queue = open()
    queue.register('pass', () => {})
    queue.start()
    await expect(queue.stop({ timeout: Number.NaN })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    const { id } = await queue.enqueue('pass', null)
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded' })
  })

  it.each([{}, { timeout: 60_000 }])('aborts the signal of what it gives back, and says so: %o', async (options) => {
    const queue = open()
    const reasons: unknown[] = []
    queue.register('hold', options, (_payload, { signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason.code))
      return new Promise(() => {})
    })
    const events = recordEvents(queue)
    queue.start()
    const { id } = await queue.enqueue('hold', null)
    await settled()
    const stopped = queue.stop({ timeout: 0 })
    await bench.clock.advance(1)
    await stopped
    expect(await queue.status(id)).toMatchObject({ state: 'queued', attempts: 0 })
    expect(reasons).toEqual(['SHUTDOWN'])
    expect(events.at(-1)).toMatchObject({ type: 'enqueued', cause: 'released' })
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('ends a sweep that is under way', async () => {
    let letGo = () => {}
    const slow: Storage = {
      ...bench.storage,
      purge: (params) => new Promise((resolve) => (letGo = () => resolve(bench.storage.purge(params)))),
    }
    const queue = open({ keep: { succeeded: { count: 0 } } }, slow)
    queue.register('pass', () => {})
    queue.start()
    await queue.enqueue('pass', null)
    await bench.clock.advance(60_000)
    await queue.stop()
    letGo()
    await settled()
    expect(bench.clock.pendingTimers()).toBe(0)
  })

  it('for good: a closed queue neither starts nor takes tasks', async () => {
    const queue = open()
    queue.register('pass', () => {})
    queue.start()
    await queue.close()
    expect(() => queue.start()).toThrow(expect.objectContaining({ code: 'CLOSED' }) as Error)
    await expect(queue.enqueue('pass', null)).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('pause()', () => {
  it('holds for types that are registered later', async () => {
    const queue = open()
    queue.pause()
    queue.register('pass', () => {})
    queue.start()
    const { id } = await queue.enqueue('pass', null)
    await bench.clock.advance(5000)
    expect(await queue.status(id)).toMatchObject({ state: 'queued' })
    queue.resume()
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded' })
  })
})

describe('a logger that throws', () => {
  it('disturbs nothing', async () => {
    const explode = () => {
      throw new Error('full disk')
    }
    const queue = open({ logger: { info: explode, warn: explode, error: explode } })
    queue.register('pass', () => {})
    queue.start()
    const { id } = await queue.enqueue('pass', null)
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded' })
  })
})

describe('what is asked for', () => {
  it('has to be known, before anything is changed', async () => {
    const queue = open({ retry: { maxAttempts: 1 } })
    queue.register('die', fail)
    queue.start()
    const { id } = await queue.enqueue('die', null)
    await settled()
    const bad = { code: 'INVALID_OPTION' }
    const redrive = queue.redrive as (which: unknown) => Promise<unknown>
    for (const which of [[id], 42, null, undefined, { taskType: 'die' }])
      await expect(redrive(which)).rejects.toMatchObject(bad)
    await expect(queue.purge({ status: 'dead' } as object)).rejects.toMatchObject(bad)
    await expect(queue.list({ stat: 'dead' } as object)).rejects.toMatchObject(bad)
    await expect(queue.enqueue('die', null, { dedupKey: 'a' } as object)).rejects.toMatchObject(bad)
    await expect(queue.enqueueMany('die', null as never)).rejects.toMatchObject(bad)
    expect(await queue.countsByState()).toEqual({ queued: 0, running: 0, retry_scheduled: 0, succeeded: 0, dead: 1 })
  })

  it('is limited to its type', async () => {
    const queue = open()
    queue.register('one', () => {})
    queue.register('other', () => {})
    await queue.enqueueMany('one', [{ payload: 1 }, { payload: 2 }])
    await queue.enqueue('other', 3)
    expect(await queue.countsByState({ type: 'one' })).toMatchObject({ queued: 2 })
    expect(await queue.list({ type: 'other' })).toMatchObject([{ payload: 3 }])
    await expect(queue.list({ type: 'none' })).rejects.toMatchObject({ code: 'UNKNOWN_TASK_TYPE' })
  })

  it('says who did it where somebody says so', async () => {
    const queue = open({ retry: { maxAttempts: 1 } })
    queue.register('broken', fail)
    queue.start()
    const { id } = await queue.enqueue('broken', null)
    await bench.clock.advance(1000)
    await queue.redrive(id, { as: { actor: 'ann' } })
    await bench.clock.advance(1000)
    await queue.redrive({}, { as: { actor: 'bob' } })
    await bench.clock.advance(1000)
    await queue.remove(id, { as: { actor: 'eve' } })
    const entries = await bench.open().getAudit({ target: id })
    expect(entries.map(({ actor, action }) => [actor, action])).toEqual([
      ['eve', 'deleteRun'],
      ['bob', 'retry'],
      ['ann', 'retry'],
    ])
  })

  it('is done to hundreds of dead tasks', async () => {
    const queue = open({ retry: { maxAttempts: 1 }, concurrency: 50 })
    queue.register('die', fail)
    queue.start()
    await queue.enqueueMany(
      'die',
      Array.from({ length: 250 }, (_, payload) => ({ payload })),
    )
    await bench.clock.advance(1000)
    queue.pause()
    const events = recordEvents(queue)
    const redriven = queue.redrive({})
    await bench.clock.advance(1000)
    expect(await redriven).toBe(250)
    expect(events).toHaveLength(250)
    expect(events[0]).toMatchObject({ type: 'enqueued', cause: 'redriven' })
  })

  it('is done to those that nobody else has redriven meanwhile', async () => {
    const queue = open({ retry: { maxAttempts: 1 }, concurrency: 9 })
    queue.register('die', fail)
    queue.start()
    const tasks = await queue.enqueueMany('die', [{ payload: 1 }, { payload: 2 }, { payload: 3 }])
    await bench.clock.advance(1000)
    queue.pause()
    const [all] = await Promise.all([queue.redrive({}), queue.redrive(tasks[0]?.id ?? '')])
    expect(all).toBe(2)
    expect(await queue.countsByState()).toMatchObject({ queued: 3, dead: 0 })
  })

  it('asks a task to stop that begins while it is removed', async () => {
    const queue = open()
    queue.register('hold', () => new Promise(() => {}))
    const { id } = await queue.enqueue('hold', null)
    const other = open(
      {},
      { ...bench.storage, command: (order) => beginFirst().then(() => bench.storage.command(order)) },
    )
    other.register('hold', () => {})
    async function beginFirst() {
      queue.start()
      await settled()
    }
    await expect(other.remove(id)).rejects.toThrow('has just been started')
    await bench.clock.advance(20_000)
    expect(await queue.status(id)).toMatchObject({ state: 'dead', attempts: 1, lastError: 'The task was cancelled.' })
  })

  it('knows the limit of the queue for types that nobody registered here', async () => {
    const queue = open({ retry: { maxAttempts: 3 } })
    queue.register('pass', { retry: { maxAttempts: 9 } }, () => {})
    const { id } = await queue.enqueue('pass', null)
    expect(await queue.status(id)).toMatchObject({ maxAttempts: 9 })
    expect(await open({ retry: { maxAttempts: 3 } }).status(id)).toMatchObject({ maxAttempts: 3 })
  })

  it('leaves a running task alone when it may not be removed', async () => {
    const gate = createGate()
    const queue = open()
    queue.register('hold', () => gate.opened)
    queue.start()
    const { id } = await queue.enqueue('hold', null)
    await settled()
    await expect(queue.remove(id)).rejects.toMatchObject({ code: 'CONFLICT' })
    gate.open()
    await settled()
    expect(await queue.status(id)).toMatchObject({ state: 'succeeded', lastError: null })
  })
})

describe('runs of jobs on the same storage', () => {
  it('are not what the queue keeps, counts or purges', async () => {
    const durably = bench.open()
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    const { id } = await job.trigger({})
    await durably.runUntilIdle()
    const queue = open({ keep: { succeeded: { age: 1000, count: 0 }, dead: { age: 1000, count: 0 } } })
    queue.register('pass', () => {})
    queue.start()
    await queue.enqueue('pass', null)
    await bench.clock.advance(120_000)
    expect(await queue.list()).toEqual([])
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })
})

describe('a page of tasks', () => {
  it('goes on after the id of its last one', async () => {
    const queue = open()
    queue.register('pass', () => {})
    const first = await queue.enqueue('pass', null)
    await bench.clock.advance(1)
    const second = await queue.enqueue('pass', null)
    expect(await queue.list({ cursor: second.id })).toMatchObject([{ id: first.id }])
  })
})
