import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClaimParams } from '../storage'
import { defineJob, type Durably, type DurablyOptions, type JobHandle, type JobOptions, type Storage } from '../index'
import { settled } from '../testing/fake-clock'
import {
  anything,
  type Bench,
  countCalls,
  createBench,
  createFaulty,
  createGate,
  type Gate,
  wrapStorage,
} from '../testing/test-bench'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

type Limits = Pick<JobOptions<string, unknown, unknown>, 'concurrency' | 'rateLimit' | 'retry'>

/** So long that what happens in a test was not found by polling. */
const NEVER = 3_600_000

/** Jobs whose runs tell when they begin, and stay until they are let go. */
class Hall {
  readonly durably: Durably
  readonly begun: string[] = []
  readonly times: number[] = []
  readonly #gates = new Map<string, Gate>()

  constructor(options: Partial<DurablyOptions> = {}) {
    this.durably = bench.open({ concurrency: 10, pollingInterval: NEVER, ...options })
  }

  job(name: string, limits: Limits = {}, stays = true): JobHandle<string, unknown, void> {
    return this.durably.defineJob({ name, input: anything, ...limits }, async (_ctx, payload) => {
      this.begun.push(String(payload))
      this.times.push(bench.clock.monotonic())
      if (!stays) return
      const gate = createGate()
      this.#gates.set(String(payload), gate)
      await gate.opened
    })
  }

  /** A job whose runs end at once. */
  quick(name: string, limits: Limits): JobHandle<string, unknown, void> {
    return this.job(name, limits, false)
  }

  async open(): Promise<void> {
    this.durably.start()
    await settled()
  }

  async leave(...names: string[]): Promise<void> {
    for (const name of names) this.#gates.get(name)?.open()
    await settled()
  }

  async empty(): Promise<void> {
    for (const gate of this.#gates.values()) gate.open()
    await settled()
  }
}

function withSlowClaims(ms: () => number): Storage {
  return wrapStorage(bench.storage, async (operation, call) => {
    if (operation === 'claim') await new Promise<void>((resolve) => bench.clock.schedule(ms(), resolve))
    return call()
  })
}

/** That many runs, with payloads `a1`, `a2`, … */
async function enter(job: JobHandle, names: string, count: number): Promise<void> {
  await job.batchTrigger(Array.from({ length: count }, (_, n) => ({ payload: `${names}${n + 1}` })))
}

describe('the concurrency of a job', () => {
  it('is as many runs of it at a time as it says, beside others', async () => {
    const hall = new Hall()
    await enter(hall.job('limited', { concurrency: 2 }), 'a', 5)
    await enter(hall.job('free'), 'b', 3)
    await hall.open()
    expect(hall.begun).toEqual(['a1', 'a2', 'b1', 'b2', 'b3'])
    await hall.leave('a2', 'b1')
    expect(hall.begun.slice(5)).toEqual(['a3'])
    await hall.leave('a1', 'a3')
    expect(hall.begun.slice(6)).toEqual(['a4', 'a5'])
    await hall.empty()
  })

  it('leaves the worker its own', async () => {
    const hall = new Hall({ concurrency: 3 })
    await enter(hall.job('limited', { concurrency: 5 }), 'a', 5)
    await hall.open()
    expect(hall.begun).toEqual(['a1', 'a2', 'a3'])
    await hall.empty()
  })

  it('is free again however a run ends', async () => {
    const durably = bench.open({ concurrency: 10, pollingInterval: NEVER })
    const define = { name: 'job', input: anything, concurrency: 1, timeout: 100 }
    const job = durably.defineJob(define, (ctx, act) => {
      if (act === 'fail') throw new Error('no')
      if (act === 'sleep') return ctx.sleep('a while', 50)
      if (act !== 'hang') return undefined
      return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
    })
    for (const payload of ['hang', 'fail', 'sleep', 'last']) await job.trigger(payload)
    durably.start()
    await bench.clock.advance(200)
    expect(await durably.counts()).toMatchObject({ failed: 1, timed_out: 1, completed: 2 })
  })

  it('is for each worker', async () => {
    const halls = [new Hall(), new Hall()]
    const [job] = halls.map((hall) => hall.job('limited', { concurrency: 1 }))
    if (job !== undefined) await enter(job, 'a', 3)
    for (const hall of halls) await hall.open()
    expect(halls.map(({ begun }) => begun)).toEqual([['a1'], ['a2']])
    for (const hall of halls) await hall.empty()
  })

  it('holds also for what a claim took whose answer was lost', async () => {
    const faulty = createFaulty(bench.storage)
    const hall = new Hall({ storage: faulty.storage })
    await enter(hall.job('limited', { concurrency: 2 }), 'a', 5)
    faulty.loseAnswer('claim')
    await hall.open()
    expect(hall.begun).toEqual([])
    await bench.clock.advance(10_000)
    expect(hall.begun).toEqual(['a1', 'a2'])
    await hall.empty()
  })
})

describe('the order among jobs with limits and without', () => {
  it('is that of all runs', async () => {
    const hall = new Hall({ concurrency: 1 })
    const limited = hall.quick('limited', { concurrency: 1, rateLimit: { max: 100, per: 1000 } })
    const free = hall.quick('free', {})
    await limited.trigger('a1')
    await free.trigger('b1')
    await limited.trigger('a2', { priority: 5 })
    await free.trigger('b2', { priority: 7 })
    await limited.trigger('a3', { priority: 9 })
    await hall.open()
    expect(hall.begun).toEqual(['a3', 'b2', 'a2', 'a1', 'b1'])
  })

  it('passes over what has no room, and comes back to it first', async () => {
    const hall = new Hall({ concurrency: 3 })
    const limited = hall.job('limited', { concurrency: 1 })
    const free = hall.job('free')
    await limited.trigger('a1', { priority: 9 })
    await limited.trigger('a2', { priority: 8 })
    await free.trigger('b1', { priority: 7 })
    await limited.trigger('a3', { priority: 6 })
    await free.trigger('b2')
    await free.trigger('b3')
    await hall.open()
    expect(hall.begun).toEqual(['a1', 'b1', 'b2'])
    await hall.leave('a1')
    expect(hall.begun.slice(3)).toEqual(['a2'])
    await hall.leave('b1')
    expect(hall.begun.slice(4)).toEqual(['b3'])
    await hall.empty()
  })

  it('lets nobody starve', async () => {
    const hall = new Hall({ concurrency: 4 })
    const greedy = hall.quick('greedy', { rateLimit: { max: 2, per: 1000 } })
    const narrow = hall.quick('narrow', { concurrency: 1 })
    const free = hall.quick('free', {})
    await greedy.batchTrigger(Array.from({ length: 50 }, () => ({ payload: 'greedy', options: { priority: 9 } })))
    await free.batchTrigger(Array.from({ length: 20 }, () => ({ payload: 'free' })))
    await narrow.batchTrigger(Array.from({ length: 20 }, () => ({ payload: 'narrow', options: { priority: -1 } })))
    await hall.open()
    await settled()
    const count = (name: string) => hall.begun.filter((each) => each === name).length
    expect([count('greedy'), count('free'), count('narrow')]).toEqual([2, 20, 20])
    await bench.clock.advance(24_000)
    expect(count('greedy')).toBe(50)
  })
})

describe('a rate limit', () => {
  it('lets a burst through, and the next when its time is over, to the millisecond', async () => {
    const hall = new Hall()
    await enter(hall.quick('limited', { rateLimit: { max: 3, per: 1000 } }), 'a', 7)
    await hall.open()
    expect(hall.begun).toHaveLength(3)
    await bench.clock.advance(999)
    expect(hall.begun).toHaveLength(3)
    await bench.clock.advance(1)
    expect(hall.begun).toHaveLength(6)
    await bench.clock.advance(1000)
    expect(hall.times).toEqual([0, 0, 0, 1000, 1000, 1000, 2000])
  })

  it('counts in every stretch of time, wherever that begins', async () => {
    const hall = new Hall()
    const job = hall.quick('limited', { rateLimit: { max: 2, per: 1000 } })
    await hall.open()
    await job.trigger('a')
    await bench.clock.advance(600)
    await enter(job, 'b', 5)
    await settled()
    await bench.clock.advance(3000)
    expect(hall.times).toEqual([0, 600, 1000, 1600, 2000, 2600])
  })

  it('begins each run as soon as it may, and none sooner', async () => {
    const [max, per] = [7, 500]
    const hall = new Hall()
    const job = hall.quick('limited', { rateLimit: { max, per } })
    await hall.open()
    const wanted: number[] = []
    let state = 1
    while (wanted.length < 300) {
      state = (state * 48_271) % 2_147_483_647
      if (state % 3 === 0) await bench.clock.advance(state % 97)
      wanted.push(bench.clock.monotonic())
      await job.trigger('a')
    }
    await bench.clock.advance(60_000)
    const times: number[] = []
    for (const [n, at] of wanted.entries()) times.push(Math.max(at, (times[n - max] ?? Number.NEGATIVE_INFINITY) + per))
    expect(hall.times).toEqual(times)
  })

  it('is not outwitted by a process that stood still', async () => {
    const hall = new Hall()
    await enter(hall.quick('limited', { rateLimit: { max: 2, per: 1000 } }), 'a', 8)
    await hall.open()
    await bench.clock.stall(10_500)
    expect(hall.times).toEqual([0, 0, 10_500, 10_500])
    await bench.clock.advance(1000)
    expect(hall.times.slice(4)).toEqual([11_500, 11_500])
  })

  it('goes by durations, whatever happens to the time of day', async () => {
    const hall = new Hall()
    await enter(hall.quick('limited', { rateLimit: { max: 1, per: 1000 } }), 'a', 2)
    await hall.open()
    bench.clock.setWall(-5000)
    await bench.clock.advance(999)
    bench.clock.setWall(60_000)
    expect(hall.times).toEqual([0])
    await bench.clock.advance(1)
    expect(hall.times).toEqual([0, 1000])
  })

  it('counts a try after an error, and going on after a wait', async () => {
    const durably = bench.open({ concurrency: 10, pollingInterval: NEVER })
    const times: number[] = []
    const options = { name: 'job', input: anything, rateLimit: { max: 1, per: 1000 } }
    const job = durably.defineJob({ ...options, retry: { maxAttempts: 2, delay: 300 } }, async (ctx) => {
      times.push(bench.clock.monotonic())
      if (ctx.attempt === 1) throw new Error('once more')
      await ctx.sleep('a while', 100)
    })
    durably.start()
    const { id } = await job.trigger({})
    await bench.clock.advance(3000)
    expect(times).toEqual([0, 1000, 2000])
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
  })

  it('holds together with a limit of concurrency', async () => {
    const hall = new Hall()
    await enter(hall.job('limited', { concurrency: 1, rateLimit: { max: 2, per: 1000 } }), 'a', 4)
    await hall.open()
    await hall.leave('a1')
    await bench.clock.advance(400)
    await hall.leave('a2')
    expect(hall.begun).toEqual(['a1', 'a2'])
    await bench.clock.advance(5000)
    await hall.leave('a3')
    expect(hall.times).toEqual([0, 0, 1000, 5400])
    await hall.empty()
  })

  it('still knows what was begun before the worker was stopped', async () => {
    const hall = new Hall()
    await enter(hall.quick('limited', { rateLimit: { max: 2, per: 1000 } }), 'a', 4)
    await hall.open()
    await bench.clock.advance(300)
    await hall.durably.stop()
    await hall.open()
    await bench.clock.advance(699)
    expect(hall.begun).toHaveLength(2)
    await bench.clock.advance(1)
    expect(hall.begun).toHaveLength(4)
  })

  it('is seen to open also while a claim is under way', async () => {
    const hall = new Hall({ storage: withSlowClaims(() => 10) })
    await enter(hall.quick('limited', { rateLimit: { max: 1, per: 1000 } }), 'a', 2)
    hall.quick('free', {})
    await hall.open()
    await bench.clock.advance(1005)
    hall.durably.wake()
    await bench.clock.advance(1000)
    expect(hall.times).toEqual([10, 1025])
  })

  it('opens at no cost while all slots are taken', async () => {
    const counted = countCalls(bench.storage)
    const hall = new Hall({ storage: counted.storage, concurrency: 1 })
    await enter(hall.quick('limited', { rateLimit: { max: 1, per: 1000 } }), 'a', 2)
    await enter(hall.job('free'), 'b', 1)
    await hall.open()
    counted.reset()
    await bench.clock.advance(4000)
    expect(counted.calls.claim).toBeUndefined()
    await hall.leave('b1')
    expect(hall.begun).toEqual(['a1', 'b1', 'a2'])
  })

  it('does not keep others waiting for what comes later', async () => {
    const hall = new Hall()
    const limited = hall.quick('limited', { rateLimit: { max: 1, per: 5000 } })
    const free = hall.quick('free', {})
    await hall.open()
    await limited.trigger('a1')
    await limited.trigger('a2', { delay: 1000 })
    await free.trigger('b', { delay: 2000 })
    await bench.clock.advance(20_000)
    expect(hall.times).toEqual([0, 2000, 5000])
  })

  it('keeps in mind what comes later than its window', async () => {
    const hall = new Hall()
    const limited = hall.quick('limited', { rateLimit: { max: 1, per: 1000 } })
    await hall.open()
    await limited.trigger('a1')
    await limited.trigger('a2', { delay: 7000 })
    await bench.clock.advance(20_000)
    expect(hall.times).toEqual([0, 7000])
  })
})

describe('a paused job', () => {
  it('begins nothing, while what runs goes on and other jobs do', async () => {
    const hall = new Hall()
    const job = hall.job('job')
    const other = hall.job('other')
    await hall.open()
    await job.trigger('a1')
    hall.durably.pauseJob('job')
    await job.trigger('a2')
    await other.trigger('b1')
    await settled()
    await hall.leave('a1')
    await bench.clock.advance(10_000)
    expect(hall.begun).toEqual(['a1', 'b1'])
    expect(await job.getRuns()).toMatchObject([{ status: 'pending' }, { status: 'completed' }])
    hall.durably.resumeJob('job')
    await settled()
    expect(hall.begun).toEqual(['a1', 'b1', 'a2'])
    await hall.empty()
  })

  it('does not hide when another one is due', async () => {
    const hall = new Hall()
    const paused = hall.quick('paused', {})
    const other = hall.quick('other', {})
    hall.durably.pauseJob('paused')
    await hall.open()
    await paused.trigger('a', { delay: 1000 })
    await other.trigger('b', { delay: 5000 })
    await bench.clock.advance(10_000)
    expect(hall.times).toEqual([5000])
  })

  it('is on time again for what comes later', async () => {
    const hall = new Hall()
    const job = hall.quick('job', {})
    hall.durably.pauseJob('job')
    await hall.open()
    await job.trigger('a', { delay: 5000 })
    await bench.clock.advance(1000)
    hall.durably.resumeJob('job')
    await bench.clock.advance(10_000)
    expect(hall.times).toEqual([5000])
  })

  it('stays paused when the worker is stopped and started', async () => {
    const hall = new Hall()
    const job = hall.quick('job', {})
    await hall.open()
    hall.durably.pauseJob('job')
    await hall.durably.stop()
    await job.trigger('a')
    await hall.open()
    expect(hall.begun).toEqual([])
    await hall.durably.stop()
    hall.durably.resumeJob('job')
    await settled()
    expect(hall.begun).toEqual([])
    await hall.open()
    expect(hall.begun).toEqual(['a'])
  })

  it('is paused on its instance only', async () => {
    const [one, two] = [new Hall(), new Hall()]
    const [job] = [one.quick('job', {}), two.quick('job', {})]
    one.durably.pauseJob('job')
    await one.open()
    await two.open()
    await job.trigger('a')
    await settled()
    expect([one.begun, two.begun]).toEqual([[], ['a']])
  })

  it('is shown by health, once, and can be told twice', () => {
    const { durably } = new Hall()
    for (const name of ['a', 'b']) durably.defineJob({ name, input: anything }, () => {})
    for (const name of ['b', 'b', 'a']) durably.pauseJob(name)
    expect(durably.health().paused).toEqual(['b', 'a'])
    for (const name of ['b', 'b']) durably.resumeJob(name)
    expect(durably.health().paused).toEqual(['a'])
  })

  it('is one that the instance knows', () => {
    const { durably } = new Hall()
    const refused = expect.objectContaining({ code: 'NOT_FOUND', message: expect.stringContaining('"nobody"') })
    expect(() => durably.pauseJob('nobody')).toThrow(refused)
    expect(() => durably.resumeJob('nobody')).toThrow(refused)
    expect(durably.health().paused).toEqual([])
  })
})

describe('runUntilIdle with limits', () => {
  it('returns when a rate is used up, and says when it goes on', async () => {
    const hall = new Hall()
    await enter(hall.quick('limited', { rateLimit: { max: 2, per: 30_000 } }), 'a', 3)
    expect(await hall.durably.runUntilIdle()).toEqual({ ran: 2, nextWakeAt: '2030-01-01T00:00:30.000Z' })
    await bench.clock.advance(29_999)
    expect(await hall.durably.runUntilIdle()).toEqual({ ran: 0, nextWakeAt: '2030-01-01T00:00:30.000Z' })
    await bench.clock.advance(1)
    expect(await hall.durably.runUntilIdle()).toEqual({ ran: 1, nextWakeAt: null })
  })

  it('says when the first run of any job can begin', async () => {
    const hall = new Hall()
    const minute = hall.quick('minute', { rateLimit: { max: 1, per: 60_000 } })
    const second = hall.quick('second', { rateLimit: { max: 1, per: 1000 } })
    for (const job of [minute, minute, second]) await job.trigger('a')
    await second.trigger('a', { delay: 20_000 })
    expect(await hall.durably.runUntilIdle()).toEqual({ ran: 2, nextWakeAt: '2030-01-01T00:00:20.000Z' })
    await hall.quick('free', {}).trigger('a', { delay: 10_000 })
    expect(await hall.durably.runUntilIdle()).toEqual({ ran: 0, nextWakeAt: '2030-01-01T00:00:10.000Z' })
  })

  it('does not take a rate for a taken key when it opens meanwhile', async () => {
    const hall = new Hall({ storage: withSlowClaims(() => (bench.clock.monotonic() === 0 ? 0 : 100)) })
    await enter(hall.quick('limited', { rateLimit: { max: 1, per: 1000 } }), 'a', 2)
    hall.quick('free', {})
    const first = hall.durably.runUntilIdle()
    await bench.clock.advance(950)
    expect(await first).toEqual({ ran: 1, nextWakeAt: '2030-01-01T00:00:01.000Z' })
    const second = hall.durably.runUntilIdle()
    await bench.clock.advance(100)
    expect(await second).toEqual({ ran: 0, nextWakeAt: '2030-01-01T00:00:01.050Z' })
  })

  it('works off what is limited in concurrency', async () => {
    const hall = new Hall()
    await enter(hall.quick('limited', { concurrency: 1 }), 'a', 5)
    await enter(hall.quick('free', {}), 'b', 5)
    expect(await hall.durably.runUntilIdle()).toEqual({ ran: 10, nextWakeAt: null })
  })

  it('leaves out what is paused', async () => {
    const hall = new Hall()
    await enter(hall.quick('job', { rateLimit: { max: 1, per: 1000 } }), 'a', 2)
    hall.durably.pauseJob('job')
    expect(await hall.durably.runUntilIdle()).toEqual({ ran: 0, nextWakeAt: null })
    hall.durably.resumeJob('job')
    expect(await hall.durably.runUntilIdle()).toMatchObject({ ran: 1, nextWakeAt: '2030-01-01T00:00:01.000Z' })
  })
})

describe('what limits cost', () => {
  function noteClaims() {
    const claims: Pick<ClaimParams, 'jobs' | 'limit'>[] = []
    const storage: Storage = {
      ...bench.storage,
      claim(params) {
        claims.push({ jobs: params.jobs, limit: params.limit })
        return bench.storage.claim(params)
      },
    }
    return { claims, storage }
  }

  it('is nothing without limits', async () => {
    const { claims, storage } = noteClaims()
    const hall = new Hall({ storage })
    await enter(hall.job('a'), 'a', 2)
    hall.job('b')
    await hall.open()
    expect(claims).toEqual([{ jobs: ['a', 'b'], limit: 10 }])
    await hall.empty()
  })

  it('is a claim for each lot that the narrowest job has room for', async () => {
    const { claims, storage } = noteClaims()
    const hall = new Hall({ storage })
    await enter(hall.job('a', { concurrency: 4 }), 'a', 6)
    await enter(hall.job('b'), 'b', 1)
    await hall.open()
    expect(claims).toEqual([
      { jobs: ['a', 'b'], limit: 4 },
      { jobs: ['b'], limit: 6 },
    ])
    await hall.empty()
  })

  it('is no claim while every job is closed', async () => {
    const counted = countCalls(bench.storage)
    const hall = new Hall({ storage: counted.storage, pollingInterval: 1000 })
    await enter(hall.quick('a', { rateLimit: { max: 1, per: 600_000 } }), 'a', 2)
    hall.quick('b', {})
    hall.durably.pauseJob('b')
    await hall.open()
    counted.reset()
    await bench.clock.advance(60_000)
    expect(counted.calls.claim).toBeUndefined()
  })
})

describe('explain', () => {
  it('tells of what keeps a due run of this instance from beginning', async () => {
    const hall = new Hall()
    const job = hall.job('job', { concurrency: 1 })
    await hall.open()
    await enter(job, 'a', 2)
    await settled()
    const [waiting] = await job.getRuns({ status: 'pending' })
    expect(await hall.durably.explain(String(waiting?.id))).toContain('concurrency or rateLimit')
    hall.durably.pauseJob('job')
    expect(await hall.durably.explain(String(waiting?.id))).toContain('paused')
    await hall.empty()
  })
})

describe('limits that make no sense', () => {
  it.each<[string, unknown]>([
    ['concurrency 0', { concurrency: 0 }],
    ['half a slot', { concurrency: 1.5 }],
    ['slots without end', { concurrency: Number.POSITIVE_INFINITY }],
    ['slots as text', { concurrency: '2' }],
    ['a rate that is a number', { rateLimit: 5 }],
    ['a rate of nothing', { rateLimit: null }],
    ['a rate of none', { rateLimit: { max: 0, per: 1000 } }],
    ['a rate of parts', { rateLimit: { max: 0.5, per: 1000 } }],
    ['a rate without a time', { rateLimit: { max: 1 } }],
    ['a rate in no time', { rateLimit: { max: 1, per: 0 } }],
    ['a rate for ever', { rateLimit: { max: 1, per: Number.POSITIVE_INFINITY } }],
  ])('are refused: %s', (_what, limits) => {
    const define = () => defineJob({ name: 'greedy', input: anything, ...(limits as Limits) }, () => {})
    const [option] = Object.keys(limits as object)
    const message = expect.stringMatching(new RegExp(`"greedy".*${option}`))
    expect(define).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', message }))
  })

  it('are those of the moment when they were given', async () => {
    const rateLimit = { max: 1, per: 1000 }
    const hall = new Hall()
    const job = hall.quick('job', { rateLimit })
    rateLimit.max = 100
    await enter(job, 'a', 3)
    await hall.open()
    expect(hall.begun).toEqual(['a1'])
  })
})

describe('a job with little room', () => {
  it('makes claims smaller only while runs of it wait', async () => {
    const counted = countCalls(bench.storage)
    const limits: number[] = []
    const storage = wrapStorage(counted.storage, (_operation, call) => call())
    const claiming: Storage = {
      ...storage,
      claim(params) {
        limits.push(params.limit)
        return storage.claim(params)
      },
    }
    const hall = new Hall({ storage: claiming, concurrency: 50 })
    const narrow = hall.quick('narrow', { concurrency: 1 })
    const others = hall.quick('other', {})
    await enter(others, 'a', 100)
    hall.durably.start()
    await settled()
    expect(hall.begun).toHaveLength(100)
    expect(limits.slice(0, 2)).toEqual([50, 50])
    limits.length = 0
    await enter(narrow, 'b', 3)
    await settled()
    expect(hall.begun).toHaveLength(103)
    expect(limits).toContain(1)
  })
})
