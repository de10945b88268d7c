import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RunCommit } from '../storage'
import { type Storage, StorageError } from '../index'
import {
  anything,
  type Bench,
  countCalls,
  createBench,
  createFaulty,
  createGate,
  type Operation,
  recordEvents,
  wrapStorage,
} from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

describe('a database that is away', () => {
  it('does not make an idle worker hot, and is not the end of it', async () => {
    const faulty = createFaulty(bench.storage)
    let calls = 0
    const storage = wrapStorage(faulty.storage, (_operation, call) => {
      calls += 1
      return call()
    })
    const durably = bench.open({ storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const errors = recordEvents(durably, ['worker:error'])
    durably.start()
    await settled()
    faulty.fail()
    calls = 0
    await bench.clock.advance(60_000)
    expect(calls).toBeLessThan(150)
    expect(errors.length).toBeGreaterThan(5)
    expect(errors[0]).toMatchObject({
      type: 'worker:error',
      workerId: durably.health().workerId,
      during: expect.any(String),
      error: 'The database is away.',
      code: 'STORAGE_UNAVAILABLE',
    })
    faulty.heal()
    await bench.clock.advance(10_000)
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('when the worker starts, is waited for', async () => {
    const faulty = createFaulty(bench.storage)
    const durably = bench.open({ storage: faulty.storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const { id } = await job.trigger({})
    faulty.fail()
    durably.start()
    await bench.clock.advance(20_000)
    faulty.heal()
    await bench.clock.advance(10_000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it.each([5000, 20_000])('for %i ms while a step finishes: its body runs once and the run completes', async (ms) => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    let bodies = 0
    const { now, events } = await bench.perform(
      (ctx) =>
        ctx.run('step', async () => {
          bodies += 1
          await gate.opened
          return 'value'
        }),
      { storage: faulty.storage },
    )
    faulty.fail()
    gate.open()
    await bench.clock.advance(ms)
    expect(await now()).toMatchObject({ status: 'running' })
    expect(events.some(({ type }) => type === 'step:complete')).toBe(false)
    faulty.heal()
    await bench.clock.advance(10_000)
    expect(await now()).toMatchObject({ status: 'completed', output: 'value', attempt: 1, crashCount: 0 })
    expect(bodies).toBe(1)
  })

  it('is never taken for an error of the step or the job', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    const caught: unknown[] = []
    const { now, events } = await bench.perform(
      async (ctx) => {
        try {
          await ctx.run('step', () => gate.opened)
        } catch (error) {
          caught.push(error)
        }
        return 'done'
      },
      { storage: faulty.storage },
    )
    faulty.fail('commit')
    gate.open()
    await bench.clock.advance(15_000)
    faulty.heal()
    await bench.clock.advance(10_000)
    expect(caught).toEqual([])
    expect(await now()).toMatchObject({ status: 'completed', output: 'done' })
    expect(events.some(({ type }) => type === 'step:fail' || type === 'run:fail')).toBe(false)
  })

  it('is tried again with growing pauses, not in a loop', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    const at: number[] = []
    const storage = wrapStorage(faulty.storage, (operation, call) => {
      if (operation === 'commit') at.push(bench.clock.now())
      return call()
    })
    await bench.perform((ctx) => ctx.run('step', () => gate.opened), { storage })
    faulty.fail('commit')
    gate.open()
    await bench.clock.advance(24_000)
    const pauses = at.slice(1).map((time, n) => time - (at[n] ?? 0))
    expect(at.length).toBeLessThan(20)
    expect(Math.min(...pauses)).toBeGreaterThan(0)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(5000)
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b))
    faulty.heal()
  })

  it('when the steps of an interrupted run are to be read, is waited for', async () => {
    let broken = true
    const faulty = createFaulty(bench.storage)
    let bodies = 0
    const { durably, run, now } = await bench.perform(
      async (ctx) => {
        await ctx.run('step', () => ++bodies)
        if (broken) throw new Error('no')
        return bodies
      },
      { storage: faulty.storage },
    )
    broken = false
    faulty.fail('getSteps')
    await durably.retry(run.id)
    await bench.clock.advance(8000)
    expect(await now()).toMatchObject({ status: 'running' })
    faulty.heal()
    await bench.clock.advance(6000)
    expect(await now()).toMatchObject({ status: 'completed', output: 1 })
  })

  it('only for renewals disturbs nothing shorter than the lease', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    const { now } = await bench.perform(() => gate.opened, { storage: faulty.storage })
    faulty.fail('renew')
    await bench.clock.advance(20_000)
    faulty.heal()
    await bench.clock.advance(100_000)
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'completed', crashCount: 0 })
  })

  it('is survived whatever it throws, even at once', async () => {
    const things: unknown[] = [null, undefined, 'text', 5, { code: 7 }, Object.create(null)]
    const storage: Storage = {
      ...bench.storage,
      claim(params) {
        if (things.length > 0) throw things.shift()
        return bench.storage.claim(params)
      },
    }
    const durably = bench.open({ storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const { id } = await job.trigger({})
    durably.start()
    await bench.clock.advance(60_000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('is told to onError, with what was being done', async () => {
    const faulty = createFaulty(bench.storage)
    const durably = bench.open({ storage: faulty.storage })
    durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const heard: string[] = []
    durably.onError((_error, during) => heard.push(during))
    durably.start()
    await settled()
    faulty.fail()
    await bench.clock.advance(2000)
    expect(heard).toContain('claim')
  })
})

describe('an answer that is lost', () => {
  it('of a step’s commit: it is neither doubled nor lost', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    let bodies = 0
    const { now, durably, run } = await bench.perform(
      async (ctx) => {
        const value = await ctx.run('step', async () => {
          bodies += 1
          await gate.opened
          return bodies
        })
        return ctx.run('next', () => value + 1)
      },
      { storage: faulty.storage },
    )
    faulty.loseAnswer('commit')
    gate.open()
    await bench.clock.advance(5000)
    expect(await now()).toMatchObject({ status: 'completed', output: 2, currentStepIndex: 2 })
    expect(await durably.getSteps(run.id)).toMatchObject([{ name: 'step' }, { name: 'next' }])
    expect(bodies).toBe(1)
  })

  it('of the last commit: the run ends once', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    const { now, events } = await bench.perform(() => gate.opened.then(() => 'out'), { storage: faulty.storage })
    faulty.loseAnswer('commit')
    gate.open()
    await bench.clock.advance(5000)
    expect(await now()).toMatchObject({ status: 'completed', output: 'out' })
    expect(events.filter(({ type }) => type === 'run:complete')).toHaveLength(1)
    expect(events.some(({ type }) => type === 'worker:lease-lost')).toBe(false)
  })

  it('of a claim: the run is found again and runs once, under the first lease', async () => {
    const faulty = createFaulty(bench.storage)
    let bodies = 0
    const durably = bench.open({ storage: faulty.storage })
    const job = durably.defineJob({ name: 'job', input: anything }, () => {
      bodies += 1
    })
    const { id } = await job.trigger({})
    faulty.loseAnswer('claim')
    durably.start()
    await bench.clock.advance(2000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', crashCount: 0 })
    expect(bodies).toBe(1)
    expect(await bench.storage.getRun(id)).toMatchObject({ leaseEpoch: 1 })
  })

  it('of several claims and commits for several slots: each run once', async () => {
    const faulty = createFaulty(bench.storage)
    const bodies = new Map<unknown, number>()
    const durably = bench.open({ storage: faulty.storage, concurrency: 4 })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx, payload) =>
      ctx.run('step', () => void bodies.set(payload, (bodies.get(payload) ?? 0) + 1)),
    )
    await job.batchTrigger(Array.from({ length: 12 }, (_, payload) => ({ payload })))
    durably.start()
    for (let n = 0; n < 20; n++) {
      faulty.loseAnswer(n % 2 === 0 ? 'claim' : 'commit')
      await bench.clock.advance(300)
    }
    await bench.clock.advance(10_000)
    expect(await durably.counts()).toMatchObject({ completed: 12, running: 0, pending: 0, failed: 0 })
    expect([...bodies.values()]).toEqual(Array.from({ length: 12 }, () => 1))
  })

  it('of a renewal: nothing happens', async () => {
    const faulty = createFaulty(bench.storage)
    const gate = createGate()
    const { now, events } = await bench.perform(() => gate.opened, { storage: faulty.storage })
    faulty.loseAnswer('renew')
    await bench.clock.advance(12_000)
    gate.open()
    await settled()
    expect(await now()).toMatchObject({ status: 'completed' })
    expect(events.some(({ type }) => type === 'worker:lease-lost')).toBe(false)
  })

  it('of a recovery: the run is not lost', async () => {
    const faulty = createFaulty(bench.storage)
    const dead = bench.open({
      workerId: 'dead',
      storage: wrapStorage(bench.storage, (operation, call) =>
        operation === 'renew' ? new Promise(() => {}) : call(),
      ),
    })
    const job = dead.defineJob({ name: 'job', input: anything }, () => new Promise(() => {}))
    dead.start()
    const { id } = await job.trigger({})
    await settled()
    const durably = bench.open({ storage: faulty.storage })
    durably.defineJob({ name: 'job', input: anything }, () => 'done')
    durably.start()
    await settled()
    faulty.loseAnswer('recover')
    await bench.clock.advance(29_000)
    faulty.loseAnswer('recover')
    await bench.clock.advance(15_000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'done' })
  })
})

describe('a commit that will never be taken', () => {
  const REASON = 'The value cannot be stored.'

  /** Refuses whatever has this text in it, as a database does with what its encoding lacks. */
  function refusing(text: string) {
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        if (JSON.stringify(commits).includes(text)) throw new StorageError('STORAGE_REJECTED', REASON)
        return bench.storage.commit(commits)
      },
    }
    const durably = bench.open({ storage, concurrency: 3 })
    durably.use({ name: 'history', records: { events: true, logs: true } })
    return durably
  }

  it('fails its step with the reason, once, and nobody else', async () => {
    const durably = refusing('POISON')
    let bodies = 0
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx, value) =>
      ctx.run('make', () => {
        bodies += 1
        return value
      }),
    )
    const runs = await job.batchTrigger(['good', 'POISON', 'fine'].map((payload) => ({ payload })))
    durably.start()
    await bench.clock.advance(1000)
    const ended = await Promise.all(runs.map(({ id }) => durably.getRun(id)))
    expect(ended).toMatchObject([
      { status: 'completed' },
      { status: 'failed', error: REASON, crashCount: 0, attempt: 1 },
      { status: 'completed' },
    ])
    expect(bodies).toBe(3)
    expect(await durably.getSteps(runs[1]?.id ?? '')).toMatchObject([{ name: 'make', status: 'failed', error: REASON }])
  })

  it('can be dealt with by the job, the same on every pass', async () => {
    const durably = refusing('POISON')
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      const said = await ctx.run('make', () => 'POISON').catch((error: Error) => `${error.name}: ${error.message}`)
      await ctx.sleep('rest', 60_000)
      return said
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(70_000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: `StorageError: ${REASON}` })
  })

  it('is tried again where the step has a policy for it', async () => {
    const durably = refusing('POISON')
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) =>
      ctx.run('make', { retry: { maxAttempts: 3, delay: 10 } }, ({ attempt }) => (attempt < 3 ? 'POISON' : 'good')),
    )
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(5000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'good' })
  })

  it('fails the guilty one of parallel steps, a log line costs only itself', async () => {
    const durably = refusing('POISON')
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      ctx.log.info('POISON')
      const made = ['a', 'POISON', 'b', 'c'].map((value, n) => ctx.run(`make ${n}`, () => value))
      const settled = await Promise.allSettled(made)
      ctx.progress(1, 2, 'POISON')
      ctx.log.info('fine')
      await ctx.run('last', () => 1)
      return settled.map(({ status }) => status)
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    const output = ['fulfilled', 'rejected', 'fulfilled', 'fulfilled']
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output, crashCount: 0 })
    expect((await durably.getLogs(id)).map(({ message }) => message)).toEqual(['fine'])
  })

  it.each([
    { refused: 'a log line', message: 'all', line: 'POISON', progress: { current: 5, total: 5, message: 'all' } },
    { refused: 'its own message', message: 'POISON', line: 'fine', progress: null },
  ])('costs the progress right before the end of a run nothing but $refused', async ({ message, line, progress }) => {
    const durably = refusing('POISON')
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => {
      ctx.progress(5, 5, message)
      ctx.log.info(line)
      return 'done'
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(1000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 'done', progress })
  })

  it.each([
    ['ctx.trigger', 'payload', true],
    ['ctx.triggerAll', 'payload', true],
    ['ctx.waitFor', 'signal', true],
    ['a checkpoint', 'saved', true],
    ['the output of the run', 'output', false],
    ['the error of the run', 'thrown', false],
  ])('fails the run by %s', async (_name, what, isOfStep) => {
    const durably = refusing('POISON')
    const child = durably.defineJob({ name: 'child', input: anything }, () => 1)
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      if (what === 'payload' && _name === 'ctx.trigger') await ctx.trigger('step', child, 'POISON')
      if (what === 'payload' && _name === 'ctx.triggerAll') await ctx.triggerAll('step', child, ['a', 'POISON'])
      if (what === 'signal') await ctx.waitFor('step')
      if (what === 'saved') await ctx.run('step', ({ save }) => save('POISON'))
      if (what === 'thrown') throw new Error('POISON')
      return 'POISON'
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(10)
    if (what === 'signal') await durably.signal(id, 'step', 'POISON')
    await bench.clock.advance(5000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'failed', error: REASON, crashCount: 0, attempt: 1 })
    const steps = (await durably.getSteps(id)).map(({ name, status }) => `${name} ${status}`)
    expect(steps).toEqual(isOfStep ? ['step failed'] : [])
    expect(await durably.counts()).toMatchObject({ pending: 0, running: 0, completed: 0, failed: 1 })
  })

  it('does not send for ever what cannot even be stored as failed', async () => {
    let refused = 0
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        if (commits.some(({ steps, outcome }) => steps.length > 0 || outcome !== null)) {
          refused += 1
          throw new StorageError('STORAGE_REJECTED', REASON)
        }
        return bench.storage.commit(commits)
      },
    }
    const durably = bench.open({ storage })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('step', () => 1))
    durably.start()
    await job.trigger({})
    await bench.clock.advance(10_000)
    expect(refused).toBeLessThan(10)
  })
})

describe('a commit whose run somebody holds', () => {
  it('keeps no other run from its commits, is tried again aside, and is told of when it lasts', async () => {
    let isHeld = true
    let tries = 0
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        const isBusy = ({ steps }: (typeof commits)[number]) => isHeld && steps.some(({ name }) => name === 'held')
        const answers = await bench.storage.commit(commits.filter((commit) => !isBusy(commit)))
        const left = [...answers]
        if (commits.some(isBusy)) tries += 1
        return commits.map((commit) =>
          isBusy(commit) ? { kept: false, isBusy: true } : (left.shift() ?? { kept: false }),
        )
      },
    }
    const durably = bench.open({ storage, concurrency: 3 })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx, name) => ctx.run(String(name), () => 1))
    const errors = recordEvents(durably, ['worker:error', 'worker:lease-lost'])
    const runs = await job.batchTrigger(['good', 'held', 'fine'].map((payload) => ({ payload })))
    const statuses = () => Promise.all(runs.map(async ({ id }) => (await durably.getRun(id))?.status))
    durably.start()
    await bench.clock.advance(100)
    expect(await statuses()).toEqual(['completed', 'running', 'completed'])
    expect(errors).toEqual([])
    await bench.clock.advance(60_000)
    expect(errors[0]).toMatchObject({
      during: 'commit',
      code: 'STORAGE_BUSY',
      error: expect.stringContaining(runs[1]?.id ?? ''),
    })
    expect(tries).toBeGreaterThan(60)
    expect(errors.length).toBeLessThan(tries / 4)
    isHeld = false
    await bench.clock.advance(500)
    expect(await statuses()).toEqual(['completed', 'completed', 'completed'])
  })
})

describe('a commit that may have to wait for somebody', () => {
  const createsRuns = ({ steps, children }: RunCommit) =>
    children.length > 0 || steps.some(({ child }) => child !== null)

  it('keeps none waiting that creates no runs', async () => {
    const gate = createGate()
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        if (commits.some(createsRuns)) await gate.opened
        return bench.storage.commit(commits)
      },
    }
    const durably = bench.open({ storage, concurrency: 2 })
    const child = durably.defineJob({ name: 'child', input: anything }, () => {})
    const parent = durably.defineJob({ name: 'parent', input: anything }, (ctx) => ctx.trigger('create', child, {}))
    const plain = durably.defineJob({ name: 'plain', input: anything }, (ctx) => ctx.run('step', () => 1))
    const creating = await parent.trigger({})
    durably.start()
    await bench.clock.advance(100)
    const free = await plain.trigger({})
    await bench.clock.advance(100)
    expect(await durably.getRun(free.id)).toMatchObject({ status: 'completed' })
    expect(await durably.getRun(creating.id)).toMatchObject({ status: 'running' })
    gate.open()
    await bench.clock.advance(100)
    expect(await durably.getRun(creating.id)).toMatchObject({ status: 'completed' })
  })

  it('keeps no other waiting aside', async () => {
    const gate = createGate()
    const tried = new Set<RunCommit>()
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        const isNew = ({ steps }: RunCommit) => steps.length > 0
        const [first] = commits
        if (first === undefined || !commits.some(isNew)) return bench.storage.commit(commits)
        const isTried = tried.has(first)
        for (const commit of commits) tried.add(commit)
        if (!isTried) return commits.map(() => ({ kept: false, isBusy: true }))
        if (first.steps[0]?.name === 'held') await gate.opened
        return bench.storage.commit(commits)
      },
    }
    const durably = bench.open({ storage, concurrency: 2 })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx, name) => ctx.run(String(name), () => 1))
    const held = await job.trigger('held')
    durably.start()
    await bench.clock.advance(1000)
    const other = await job.trigger('other')
    await bench.clock.advance(1000)
    expect(await durably.getRun(other.id)).toMatchObject({ status: 'completed' })
    expect(await durably.getRun(held.id)).toMatchObject({ status: 'running' })
    gate.open()
    await bench.clock.advance(1000)
    expect(await durably.getRun(held.id)).toMatchObject({ status: 'completed' })
  })
})

describe('a storage that gives too few answers', () => {
  it('is trouble that says so, and what it did not answer is sent again', async () => {
    let short = 3
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        const answers = await bench.storage.commit(commits)
        if (short === 0) return answers
        short -= 1
        return answers.slice(1)
      },
    }
    const durably = bench.open({ storage })
    const errors = recordEvents(durably, ['worker:error'])
    let bodies = 0
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('step', () => ++bodies))
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(10_000)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 1, crashCount: 0 })
    expect(bodies).toBe(1)
    expect(errors).toMatchObject([1, 2, 3].map(() => ({ during: 'commit', code: 'STORAGE_NO_ANSWER' })))
    expect(errors[0]?.error).toContain(id)
  })
})

describe('trouble of every kind', () => {
  const OPERATIONS: readonly Operation[] = [
    'claim',
    'commit',
    'renew',
    'recover',
    'nextDue',
    'getSteps',
    'getRuns',
    'enqueue',
  ]

  it.each([1, 2, 3, 4, 5])('leaves every run completed, each body run once (seed %i)', async (seed) => {
    let state = seed * 7919
    const random = () => {
      state = (state * 1103515245 + 12345) % 2147483648
      return state / 2147483648
    }
    let healthy = false
    const storage = wrapStorage(bench.storage, async (operation, call) => {
      const luck = healthy || !OPERATIONS.includes(operation) ? 1 : random()
      if (luck < 0.15) throw new Error(`${operation} was not sent`)
      const answer = await call()
      if (luck < 0.3) throw new Error(`the answer of ${operation} was lost`)
      return answer
    })
    const counted = countCalls(storage)
    const bodies = new Map<string, number>()
    const durably = bench.open({ storage: counted.storage, concurrency: 3 })
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx, payload) => {
      for (const step of ['a', 'b', 'c']) {
        const key = `${String(payload)}/${step}`
        await ctx.run(step, () => void bodies.set(key, (bodies.get(key) ?? 0) + 1))
      }
      return payload
    })
    durably.start()
    const triggers = Array.from({ length: 15 }, (_, payload) =>
      job.trigger(payload, { idempotencyKey: `${payload}` }).catch(() => null),
    )
    await bench.clock.advance(25_000)
    await Promise.all(triggers)
    healthy = true
    await bench.clock.advance(60_000)
    const runs = await durably.getRuns()
    expect(runs.every(({ status }) => status === 'completed')).toBe(true)
    expect(runs.every(({ output, payload }) => output === payload)).toBe(true)
    expect(bodies.size).toBe(runs.length * 3)
    expect([...bodies.values()].every((count) => count === 1)).toBe(true)
  })
})

describe('a storage whose answers make no sense', () => {
  it('has a run whose payload is no JSON: that is told, and ends nothing else', async () => {
    const storage: Storage = {
      ...bench.storage,
      async claim(params) {
        const runs = await bench.storage.claim(params)
        return runs.map((run) => (run.payload === '"broken"' ? { ...run, payload: '{' } : run))
      },
    }
    const durably = bench.open({ storage, concurrency: 2 })
    const job = durably.defineJob({ name: 'job', input: anything }, () => 'done')
    const errors = recordEvents(durably, ['worker:error'])
    const broken = await job.trigger('broken')
    const good = await job.trigger('good')
    durably.start()
    await bench.clock.advance(100)
    expect(await durably.getRun(good.id)).toMatchObject({ status: 'completed' })
    expect(errors[0]).toMatchObject({ during: `run ${broken.id}`, error: expect.stringContaining('JSON') })
  })

  it('answers commits with nothing at all: they are sent again', async () => {
    let isSilent = true
    const storage: Storage = {
      ...bench.storage,
      async commit(commits) {
        const answers = await bench.storage.commit(commits)
        return isSilent ? (undefined as unknown as typeof answers) : answers
      },
    }
    const durably = bench.open({ storage })
    const job = durably.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('step', () => 1))
    const errors = recordEvents(durably, ['worker:error'])
    const run = await job.trigger({})
    durably.start()
    await bench.clock.advance(200)
    expect(errors[0]).toMatchObject({ code: 'STORAGE_NO_ANSWER' })
    isSilent = false
    await bench.clock.advance(10_000)
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed', output: 1 })
  })
})
