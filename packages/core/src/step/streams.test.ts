import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type JobContext, type Plugin, type Storage, StorageError, type StreamEmit } from '../index'
import type { RunCommit, TransactionStorage } from '../storage'
import { settled } from '../testing/fake-clock'
import {
  anything,
  type Bench,
  createBench,
  createFaulty,
  createGate,
  createMortal,
  type JobBody,
  recordEvents,
} from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const HISTORY: Plugin = {
  name: 'history',
  records: { events: ['step:start', 'step:chunk', 'step:complete', 'step:fail'] },
}

const pause = (ms: number) => new Promise<void>((resolve) => bench.clock.schedule(ms, resolve))

/** Whose commits can be looked at. */
function watchCommits(storage: Storage = bench.storage) {
  const commits: RunCommit[] = []
  const watched: Storage = {
    ...storage,
    commit(list) {
      commits.push(...list)
      return storage.commit(list)
    },
  }
  return { commits, storage: watched }
}

async function begin(execute: JobBody, { storage = bench.storage as Storage, plugins = [HISTORY], ...options } = {}) {
  const durably = bench.open({ storage, ...options })
  for (const plugin of plugins) durably.use(plugin)
  const events = recordEvents(durably, ['step:chunk', 'step:restart'])
  const job = durably.defineJob({ name: 'job', input: anything }, execute)
  durably.start()
  await settled()
  const { id } = await job.trigger({})
  await settled()
  return { durably, id, events, now: () => durably.getRun(id) }
}

/** What a reader of the history gets: chunks as they are, other events by their last word. */
async function historyOf(id: string): Promise<unknown[]> {
  const stored = (await bench.storage.events?.getEvents(id, {})) ?? []
  expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1))
  return stored.map(({ type, payload }) =>
    type === 'step:chunk' ? JSON.parse(payload).chunk : type.replace('step:', ''),
  )
}

describe('ctx.stream', () => {
  it('tells what it emits at once, stores its result, and emits nothing when it is replayed', async () => {
    const {
      durably: first,
      events,
      id,
    } = await begin(
      async (ctx) => {
        const text = await ctx.stream('talk', async (emit, { attempt, idempotencyKey }) => {
          await emit('Hello')
          await emit({ to: 'you', from: undefined })
          return { attempt, key: idempotencyKey.endsWith('/talk') }
        })
        if (ctx.attempt === 1) throw new Error('once more')
        return text
      },
      { plugins: [] },
    )
    expect(events.map((event) => 'chunk' in event && event.chunk)).toEqual(['Hello', { to: 'you' }])
    expect(events[0]).toMatchObject({ runId: id, jobName: 'job', stepName: 'talk', stepIndex: 0 })
    expect(await bench.storage.getSteps(id)).toMatchObject([{ kind: 'stream', status: 'completed' }])
    await first.stop()
    const durably = bench.open()
    const replayed = recordEvents(durably, ['step:chunk', 'step:restart'])
    durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.stream('talk', () => 'anew'))
    await durably.retry(id)
    await durably.runUntilIdle()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: { attempt: 1, key: true } })
    expect(replayed).toEqual([])
  })

  it('costs one commit as any step while nobody keeps its chunks, without the events of the storage', async () => {
    const { events: _events, ...required } = bench.storage
    const { commits, storage } = watchCommits(required)
    const { now } = await begin(
      (ctx) =>
        ctx.stream('talk', async (emit) => {
          for (let n = 0; n < 100; n++) await emit('x'.repeat(1000))
          await pause(1000)
        }),
      { storage, plugins: [] },
    )
    await bench.clock.advance(1000)
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(commits).toHaveLength(2)
  })

  it('stores chunks together: after 50 ms, text joined, in order, and the rest with the result', async () => {
    const { commits, storage } = watchCommits()
    const { id, now } = await begin(
      (ctx) =>
        ctx.stream('talk', async (emit) => {
          for (let n = 0; n < 20; n++) {
            await emit(`${n} `)
            if (n === 15) for (const chunk of [{ n }, { n: n + 1 }]) await emit(chunk)
            await pause(10)
          }
          return 'said'
        }),
      { storage },
    )
    await bench.clock.advance(49)
    expect(commits).toHaveLength(0)
    await bench.clock.advance(1)
    expect(commits).toHaveLength(1)
    expect(commits[0]?.steps).toMatchObject([{ kind: 'stream', status: 'started' }])
    await bench.clock.advance(150)
    expect(await now()).toMatchObject({ status: 'completed', output: 'said' })
    const [start, ...told] = await historyOf(id)
    expect([start, told.pop()]).toEqual(['start', 'complete'])
    const objects = told.filter((chunk) => typeof chunk === 'object')
    expect(objects).toEqual([{ n: 15 }, { n: 16 }])
    const texts = told.filter((chunk) => typeof chunk === 'string')
    expect(texts.join('')).toBe(Array.from({ length: 20 }, (_, n) => `${n} `).join(''))
    expect(texts.length).toBeLessThanOrEqual(6)
    // One each 50 ms, the last of them with the result, and the end of the run.
    expect(commits.length).toBeLessThanOrEqual(6)
    expect(await bench.storage.getSteps(id)).toMatchObject([{ status: 'completed', output: '"said"' }])
  })

  it('writes no row for its start when it is over before its chunks are stored', async () => {
    const { commits, storage } = watchCommits()
    await begin((ctx) => ctx.stream('talk', (emit) => emit('short')), { storage })
    expect(commits.map(({ steps }) => steps.map(({ status }) => status))).toEqual([['completed'], []])
  })

  it('does not wait for 50 ms with 64 KiB, and does not join more than that', async () => {
    const { commits, storage } = watchCommits()
    const { id } = await begin(
      (ctx) =>
        ctx.stream('talk', async (emit) => {
          for (let n = 0; n < 5; n++) {
            await emit(String(n).repeat(20_000))
            await pause(1)
          }
        }),
      { storage },
    )
    await bench.clock.advance(3)
    expect(commits).toHaveLength(1)
    await bench.clock.advance(47)
    const [, ...told] = await historyOf(id)
    expect(told.map((chunk) => String(chunk).length)).toEqual([60_000, 20_000, 20_000, 8])
    expect(commits).toHaveLength(3)
  })

  it('does not let a chunk wait longer because a commit was in flight', async () => {
    const arrivals: number[] = []
    const storage: Storage = {
      ...bench.storage,
      async commit(list) {
        await pause(40)
        arrivals.push(bench.clock.monotonic())
        return bench.storage.commit(list)
      },
    }
    await begin(
      (ctx) =>
        ctx.stream('talk', async (emit) => {
          await emit('at 0')
          await pause(60)
          await emit('at 60')
          await pause(1000)
        }),
      { storage },
    )
    await bench.clock.advance(200)
    // Sent at 50 and at 110, as it would have been without the first.
    expect(arrivals).toEqual([90, 150])
  })

  it('lets emit wait while the database is away and too much is waiting for it', async () => {
    const faulty = createFaulty(bench.storage)
    faulty.fail('commit')
    let emitted = 0
    const { now, id } = await begin(
      (ctx) =>
        ctx.stream('talk', async (emit) => {
          for (; emitted < 40; emitted++) await emit('x'.repeat(50_000))
        }),
      { storage: faulty.storage },
    )
    await bench.clock.advance(2000)
    expect(emitted).toBe(20)
    faulty.heal()
    await bench.clock.advance(10_000)
    expect(emitted).toBe(40)
    expect(await now()).toMatchObject({ status: 'completed' })
    const told = (await historyOf(id)).slice(1, -1)
    expect(told.join('')).toBe('x'.repeat(2_000_000))
  })
})

const talk = async (emit: StreamEmit, ...words: string[]) => {
  for (const word of words) {
    await emit(word)
    await pause(60)
  }
}

describe('a stream that starts again', () => {
  it('after a crash says first that what it said does not count', async () => {
    const mortal = createMortal(bench.storage)
    const first = await begin((ctx) => ctx.stream('talk', (emit) => talk(emit, 'one', 'two', 'three')), {
      storage: mortal.storage,
    })
    await bench.clock.advance(125)
    mortal.kill()
    const second = bench.open()
    second.use(HISTORY)
    const events = recordEvents(second, ['step:chunk', 'step:restart'])
    second.defineJob({ name: 'job', input: anything }, (ctx) => ctx.stream('talk', (emit) => talk(emit, 'anew')))
    second.start()
    await bench.clock.advance(32_000)
    expect(await second.getRun(first.id)).toMatchObject({ status: 'completed' })
    expect(events.map(({ type }) => type)).toEqual(['step:restart', 'step:chunk'])
    expect(await historyOf(first.id)).toEqual(['start', 'one', 'two', 'start', 'restart', 'anew', 'complete'])
  })

  it('says so soon, also when it has nothing new to say yet', async () => {
    const { id } = await begin((ctx) =>
      ctx.stream('talk', { retry: { maxAttempts: 2, delay: 0 } }, async (emit, { attempt }) => {
        if (attempt === 2) return pause(60_000)
        await emit('one')
        throw new Error('no')
      }),
    )
    await bench.clock.advance(100)
    expect(await historyOf(id)).toEqual(['start', 'one', 'fail', 'start', 'restart'])
  })

  it.each(['here', 'in another process'])('by its policy says so %s', async (where) => {
    const job = (ctx: JobContext) =>
      ctx.stream('talk', { retry: { maxAttempts: 3, delay: 5000 } }, async (emit, { attempt }) => {
        if (attempt === 2) throw new Error('said nothing')
        await talk(emit, `try ${attempt}`)
        if (attempt === 1) throw new Error('no')
      })
    const first = await begin(job)
    await bench.clock.advance(100)
    if (where === 'in another process') {
      await first.durably.stop()
      const second = bench.open()
      second.use(HISTORY)
      second.defineJob({ name: 'job', input: anything }, job)
      second.start()
    }
    await bench.clock.advance(12_000)
    expect(await historyOf(first.id)).toEqual([
      'start',
      'try 1',
      'fail',
      'start',
      'restart',
      'fail',
      'start',
      'restart',
      'try 3',
      'complete',
    ])
  })

  it('by hand says so', async () => {
    let isFixed = false
    const { durably, id } = await begin((ctx) =>
      ctx.stream('talk', async (emit) => {
        await talk(emit, isFixed ? 'fine' : 'bad')
        if (!isFixed) throw new Error('no')
      }),
    )
    await bench.clock.advance(100)
    isFixed = true
    await durably.retry(id)
    await bench.clock.advance(100)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    expect(await historyOf(id)).toEqual(['start', 'bad', 'fail', 'start', 'restart', 'fine', 'complete'])
  })

  it('because a plugin runs its body, or the job, again says so', async () => {
    const again: Plugin = {
      name: 'again',
      aroundStep: (_step, next) => next().catch(() => next()),
      aroundRun: (_run, next) => next().catch(() => next()),
    }
    const emits: StreamEmit[] = []
    const { events, now } = await begin(
      (ctx) =>
        ctx.stream('talk', async (emit) => {
          // What is left of the try before has no say any more.
          await emits
            .at(-1)?.('late')
            .catch(() => {})
          emits.push(emit)
          await emit(emits.length)
          if (emits.length < 4) throw new Error('no')
        }),
      { plugins: [again] },
    )
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(events.map((event) => ('chunk' in event ? event.chunk : 'restart'))).toEqual([
      1,
      'restart',
      2,
      'restart',
      3,
      'restart',
      4,
    ])
  })

  it('does not say so when it had said nothing', async () => {
    const mortal = createMortal(bench.storage)
    const first = await begin((ctx) => ctx.stream('talk', () => pause(60_000)), { storage: mortal.storage })
    await bench.clock.advance(200)
    mortal.kill()
    const second = bench.open()
    second.use(HISTORY)
    const job = (ctx: JobContext) =>
      ctx.stream('talk', { retry: { maxAttempts: 2, delay: 0 } }, async (emit, { attempt }) => {
        if (attempt === 1) throw new Error('no')
        await emit('anew')
      })
    second.defineJob({ name: 'job', input: anything }, job)
    second.start()
    await bench.clock.advance(32_000)
    expect(await historyOf(first.id)).toEqual(['start', 'start', 'fail', 'start', 'anew', 'complete'])
  })
})

describe('emit', () => {
  it('refuses what cannot be stored, and the step fails even if nobody looked', async () => {
    const { now } = await begin((ctx) => {
      const odd = ctx.stream('odd', (emit) => void emit(new Date(0)))
      const big = ctx.stream('big', async (emit) => void emit('x'.repeat(256 * 1024)))
      return Promise.all([odd, big].map((stream) => stream.catch(({ code, message }) => [code, message])))
    })
    expect(await now()).toMatchObject({
      output: [
        ['SERIALIZATION', expect.stringContaining('A chunk of step "odd"')],
        ['PAYLOAD_TOO_LARGE', expect.stringContaining('A chunk of step "big"')],
      ],
    })
  })

  describe('whose chunk the database refuses', () => {
    const REASON = 'The value cannot be stored.'
    const refusing: Storage['commit'] = async (commits) => {
      if (JSON.stringify(commits).includes('POISON')) throw new StorageError('STORAGE_REJECTED', REASON)
      return bench.storage.commit(commits)
    }
    const beginRefusing = (execute: JobBody) => begin(execute, { storage: { ...bench.storage, commit: refusing } })

    it.each([
      { when: 'and goes on', pauseMs: 100, last: [] },
      { when: 'and ends before it was stored', pauseMs: 0, last: [{ c: 1 }] },
    ])('fails the step, $when', async ({ pauseMs, last }) => {
      const { durably, id, now } = await beginRefusing((ctx) =>
        ctx.stream('talk', async (emit) => {
          await emit({ a: 1 })
          await emit({ b: 'POISON' })
          if (pauseMs > 0) await pause(pauseMs)
          await emit({ c: 1 })
          return 'said'
        }),
      )
      await bench.clock.advance(1000)
      expect(await now()).toMatchObject({ status: 'failed', error: REASON, attempt: 1, crashCount: 0 })
      expect(await durably.getSteps(id)).toMatchObject([{ name: 'talk', status: 'failed', error: REASON }])
      expect(await historyOf(id)).toEqual(['start', { a: 1 }, ...last, 'fail'])
    })

    it('fails the step although nobody awaits emit, or a plugin takes its time with the result', async () => {
      const durably = bench.open({ storage: { ...bench.storage, commit: refusing } })
      durably.use(HISTORY)
      durably.use({
        name: 'slow',
        async aroundStep(_step, next) {
          const value = await next()
          await pause(200)
          return value
        },
      })
      const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
        ctx.stream('talk', (emit) => {
          for (const chunk of [{ a: 1 }, { b: 'POISON' }, { c: 1 }]) void emit(chunk)
        }),
      )
      durably.start()
      const { id } = await job.trigger({})
      await bench.clock.advance(1000)
      expect(await durably.getRun(id)).toMatchObject({ status: 'failed', error: REASON })
      expect(await historyOf(id)).toEqual(['start', { a: 1 }, { c: 1 }, 'fail'])
    })

    it('is no hole in the next try, nor in another stream', async () => {
      const retry = { maxAttempts: 2, delay: 10 }
      const { id, now } = await beginRefusing(async (ctx) => {
        const talk = ctx.stream('talk', { retry }, async (emit, { attempt }) => {
          await emit({ said: attempt === 1 ? 'POISON' : 'good' })
          return attempt
        })
        const other = ctx.stream('other', (emit) => emit({ said: 'more' }))
        await other
        return talk
      })
      await bench.clock.advance(1000)
      expect(await now()).toMatchObject({ status: 'completed', output: 2 })
      const history = await historyOf(id)
      expect(history).toContainEqual({ said: 'good' })
      expect(history).toContainEqual({ said: 'more' })
      expect(history.filter((type) => type === 'fail')).toHaveLength(1)
    })

    it('is no hole in what a plugin has said anew', async () => {
      const durably = bench.open({ storage: { ...bench.storage, commit: refusing } })
      durably.use({ ...HISTORY, records: { events: ['step:chunk', 'step:restart', 'step:complete'] } })
      durably.use({ name: 'again', aroundStep: (_step, next) => next().catch(() => next()) })
      let tries = 0
      const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
        ctx.stream('talk', async (emit) => {
          tries += 1
          await emit({ said: tries === 1 ? 'POISON' : 'good' })
          await pause(100)
          await emit({ said: 'end' })
        }),
      )
      durably.start()
      const { id } = await job.trigger({})
      await bench.clock.advance(1000)
      expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
      expect(await historyOf(id)).toEqual(['restart', { said: 'good' }, { said: 'end' }, 'complete'])
    })
  })

  it('refuses to work after its body', async () => {
    const leaked: StreamEmit[] = []
    const { now, events } = await begin(async (ctx) => {
      await ctx.stream('talk', (emit) => void leaked.push(emit))
      await ctx
        .stream('slow', { timeout: 10 }, async (emit) => {
          leaked.push(emit)
          await new Promise(() => {})
        })
        .catch(() => {})
      return Promise.all(leaked.map((emit) => emit('late').catch(({ message }) => message)))
    })
    await bench.clock.advance(10)
    expect(await now()).toMatchObject({
      output: ['talk', 'slow'].map((name) => `emit() of step "${name}" was called after its body had ended.`),
    })
    expect(events).toEqual([])
  })

  it('keeps what was said before the run was cancelled, and rejects', async () => {
    const gate = createGate()
    const rejected: unknown[] = []
    const { durably, id, now } = await begin((ctx) =>
      ctx.stream('talk', async (emit, { signal }) => {
        await emit('before')
        await gate.opened
        expect(signal.aborted).toBe(true)
        await emit('after').catch((error: unknown) => {
          rejected.push(error)
          throw error
        })
      }),
    )
    await durably.cancel(id)
    await settled()
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(rejected).toMatchObject([{ code: 'CANCELLED' }])
    expect(await historyOf(id)).toEqual(['start', 'before'])
  })

  it('leaves no result behind that lacks what was said after the run was cancelled, awaited or not', async () => {
    const gate = createGate()
    const { durably, id, now } = await begin((ctx) =>
      ctx.stream('talk', async (emit, { attempt }) => {
        void emit('before')
        await gate.opened
        void emit('after')
        return attempt
      }),
    )
    await durably.cancel(id)
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'cancelled' })
    await durably.retry(id)
    await settled()
    expect(await now()).toMatchObject({ status: 'completed' })
    const told = ['start', 'before', 'start', 'restart', 'beforeafter', 'complete']
    expect(await historyOf(id)).toEqual(told)
  })

  it('adds nothing to what was lost with a transaction of which nobody will know', async () => {
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
    const { durably, id, now } = await begin(
      (ctx) =>
        Promise.all([
          ctx.stream('talk', async (emit, { signal }) => {
            await emit('before')
            await sent.opened
            await emit('meanwhile')
            await new Promise((_, reject) => signal.addEventListener('abort', reject))
          }),
          ctx.transaction('pay', () => 'paid'),
        ]),
      { storage: { ...bench.storage, transaction } },
    )
    await durably.cancel(id)
    answered.open()
    await bench.clock.advance(10_000)
    expect(await now()).toMatchObject({ status: 'cancelled' })
    expect(await historyOf(id)).toEqual([])
  })

  it('does not wait for the database when the run is over', async () => {
    const faulty = createFaulty(bench.storage)
    faulty.fail('commit')
    const rejected: unknown[] = []
    const { durably } = await begin(
      (ctx) =>
        ctx.stream('talk', async (emit) => {
          for (;;) await emit('x'.repeat(100_000)).catch((error: unknown) => Promise.reject(rejected.push(error)))
        }),
      { storage: faulty.storage },
    )
    await bench.clock.advance(100)
    expect(rejected).toEqual([])
    const stopped = durably.stop({ timeout: 0 })
    await bench.clock.advance(0)
    expect(rejected).toMatchObject([{ reason: 'shutdown' }])
    faulty.heal()
    await bench.clock.advance(20_000)
    await stopped
  })

  it('is the same name space as other steps, and no step may be in it', async () => {
    const { now } = await begin(async (ctx) => {
      await ctx.stream('talk', () => 1)
      const twice = await ctx.run('talk', () => 2).catch(({ code }) => code)
      const nested = await ctx.stream('outer', () => ctx.run('inner', () => 3)).catch(({ code }) => code)
      return [twice, nested]
    })
    await bench.clock.advance(1)
    expect(await now()).toMatchObject({ output: ['DUPLICATE_STEP', 'NESTED_STEP'] })
  })

  it('gives listeners a chunk of their own', async () => {
    const durably = bench.open()
    durably.use(HISTORY)
    durably.on('step:chunk', ({ chunk }) => Object.assign(chunk as object, { spoiled: true }))
    const chunk = { fine: true }
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.stream('talk', async (emit) => {
        await emit(chunk)
        chunk.fine = false
        await pause(0)
      }),
    )
    const { id } = await job.trigger({})
    durably.start()
    await bench.clock.advance(1)
    expect(await historyOf(id)).toEqual(['start', { fine: true }, 'complete'])
  })
})
