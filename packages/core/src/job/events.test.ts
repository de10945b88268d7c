import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DurablyEvent, EventType } from '../index'
import { anything, type Bench, createBench, createGate, createMortal, found, recordEvents } from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

const at = '2030-01-01T00:00:00.000Z'

const typesOf = (events: readonly DurablyEvent[]) =>
  events.map(({ type }) => type).filter((type) => type !== 'run:trigger')

describe('the events of a run', () => {
  it('come in order and with exactly the fields of the specification', async () => {
    const gate = createGate()
    const durably = bench.open()
    const events = recordEvents(durably)
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      await ctx.run('step', async () => {
        await gate.opened
        return { n: 1 }
      })
      return 'out'
    })
    durably.start()
    await settled()
    const { id: runId } = await job.trigger({ in: true })
    await bench.clock.advance(40)
    gate.open()
    await settled()
    const later = '2030-01-01T00:00:00.040Z'
    const ids = { runId, jobName: 'job' }
    const step = { ...ids, stepName: 'step', stepIndex: 0 }
    expect(events.filter(({ type }) => type !== 'run:trigger')).toEqual([
      { type: 'run:start', ...ids, payload: { in: true }, timestamp: at, sequence: expect.any(Number) },
      { type: 'step:start', ...step, timestamp: at, sequence: expect.any(Number) },
      {
        type: 'step:complete',
        ...step,
        output: { n: 1 },
        duration: 40,
        timestamp: later,
        sequence: expect.any(Number),
      },
      { type: 'run:complete', ...ids, output: 'out', duration: 40, timestamp: later, sequence: expect.any(Number) },
    ])
    expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
  })

  it('tell how long a run took from its first start, waits and attempts included', async () => {
    const { durably, events, run } = await bench.perform(async (ctx) => {
      await ctx.sleep('an hour', 3_600_000)
      const gate = createGate()
      bench.clock.schedule(40, gate.open)
      await gate.opened
    })
    await bench.clock.advance(3_600_000)
    await bench.clock.advance(40)
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed' })
    const { startedAt, finishedAt } = found(await durably.getRun(run.id))
    const { duration } = found(events.find((event) => event.type === 'run:complete'))
    expect(duration).toBe(3_600_040)
    expect(duration).toBe(Date.parse(String(finishedAt)) - Date.parse(String(startedAt)))
  })

  it('tell of a failure', async () => {
    const { run, events } = await bench.perform((ctx) => ctx.run('bad', () => Promise.reject(new Error('no'))))
    const ids = { runId: run.id, jobName: 'job' }
    const tail = { timestamp: at, sequence: expect.any(Number) }
    expect(events.slice(-2)).toEqual([
      { type: 'step:fail', ...ids, stepName: 'bad', stepIndex: 0, error: 'no', ...tail },
      { type: 'run:fail', ...ids, error: 'no', failedStepName: 'bad', ...tail },
    ])
  })

  it('name no step when the job itself failed', async () => {
    const { events } = await bench.perform(() => Promise.reject(new Error('no')))
    expect(events.at(-1)).toMatchObject({ type: 'run:fail', failedStepName: null })
  })

  it('tell of a log line at once, with exactly these fields', async () => {
    const durably = bench.open()
    const seen: DurablyEvent<'log:write'>[] = []
    durably.on('log:write', (event) => seen.push(event))
    const counts: number[] = []
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      ctx.log.info('starting', { org: 1 })
      counts.push(seen.length)
      await ctx.run('step', ({ log }) => {
        ctx.log.warn('through ctx')
        log.error('through the step', 'text')
      })
      ctx.log.info('after')
    })
    durably.start()
    const { id: runId } = await job.trigger({})
    await settled()
    expect(counts).toEqual([1])
    const tail = { timestamp: at, sequence: expect.any(Number) }
    expect(seen).toEqual([
      { type: 'log:write', runId, stepName: null, level: 'info', message: 'starting', data: { org: 1 }, ...tail },
      { type: 'log:write', runId, stepName: 'step', level: 'warn', message: 'through ctx', data: undefined, ...tail },
      {
        type: 'log:write',
        runId,
        stepName: 'step',
        level: 'error',
        message: 'through the step',
        data: 'text',
        ...tail,
      },
      { type: 'log:write', runId, stepName: null, level: 'info', message: 'after', data: undefined, ...tail },
    ])
  })

  it('tell when what they say is in the database', async () => {
    const durably = bench.open()
    const states: string[] = []
    const reads: Promise<void>[] = []
    for (const type of ['run:start', 'run:complete'] as const) {
      durably.on(type, ({ runId }) => {
        reads.push(durably.getRun(runId).then((run) => void states.push(`${type} ${run?.status}`)))
      })
    }
    durably.on('step:complete', ({ runId }) => {
      reads.push(durably.getSteps(runId).then((steps) => void states.push(`step:complete ${steps[0]?.status}`)))
    })
    const gate = createGate()
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      await ctx.run('step', () => gate.opened)
    })
    durably.start()
    await job.trigger({})
    await settled()
    gate.open()
    await settled()
    await Promise.all(reads)
    expect(states).toEqual(['run:start running', 'step:complete completed', 'run:complete completed'])
  })

  it('are not told for a step that could not be stored', async () => {
    const mortal = createMortal(bench.storage)
    const gate = createGate()
    const { events } = await bench.perform((ctx) => ctx.run('step', () => gate.opened), { storage: mortal.storage })
    mortal.kill()
    gate.open()
    await bench.clock.advance(1000)
    expect(typesOf(events)).toEqual(['run:start', 'step:start'])
  })

  it('begin with the trigger, where trigger and worker are one process', async () => {
    const { events } = await bench.perform(() => {})
    expect(events.map(({ type }) => type)).toEqual(['run:trigger', 'run:start', 'run:complete'])
  })

  it('are told of each execution', async () => {
    const { durably, run, events } = await bench.perform(() => Promise.reject(new Error('no')))
    await durably.retry(run.id)
    await settled()
    expect(typesOf(events)).toEqual(['run:start', 'run:fail', 'run:retry', 'run:start', 'run:fail'])
  })
})

describe('listeners', () => {
  it('are called in the order of registration, synchronously, until they go', async () => {
    const durably = bench.open()
    const seen: string[] = []
    const off = durably.on('run:trigger', () => seen.push('one'))
    durably.on('run:trigger', () => seen.push('two'))
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    await job.trigger({})
    off()
    off()
    await job.trigger({})
    expect(seen).toEqual(['one', 'two', 'two'])
  })

  it('do not disturb the run or each other when they throw; onError hears of it', async () => {
    const durably = bench.open()
    const heard: [unknown, string][] = []
    const later: string[] = []
    durably.onError((error, during) => heard.push([error, during]))
    const types: EventType[] = [
      'run:trigger',
      'run:start',
      'step:start',
      'step:complete',
      'run:complete',
      'log:write',
      'run:progress',
    ]
    for (const type of types) {
      durably.on(type, () => {
        throw new Error(`from ${type}`)
      })
      durably.on(type, () => later.push(type))
    }
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx) => {
      ctx.log.info('hi')
      ctx.progress(1)
      return ctx.run('step', () => 1)
    })
    durably.start()
    await settled()
    const { id } = await job.trigger({})
    await settled()
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', output: 1 })
    expect(later.sort()).toEqual([...types].sort())
    expect(heard.map(([error]) => (error as Error).message).sort()).toEqual(types.map((type) => `from ${type}`).sort())
    expect(heard.every(([, during]) => during.includes('listener'))).toBe(true)
  })

  it('do not end the process when they are async and reject; onError hears of it', async () => {
    const durably = bench.open()
    const heard: unknown[] = []
    durably.onError((error) => heard.push(error))
    durably.on('run:trigger', async () => {
      throw new Error('later')
    })
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    await job.trigger({})
    await settled()
    expect(heard).toMatchObject([{ message: 'later' }])
  })

  it('cannot change what the job gets', async () => {
    const durably = bench.open()
    durably.on('run:start', ({ payload }) => void Object.assign(payload as object, { n: 666 }))
    durably.on('step:complete', ({ output }) => void Object.assign(output as object, { n: 666 }))
    const job = durably.defineJob({ name: 'job', input: anything }, async (ctx, payload) => {
      const value = await ctx.run('step', () => ({ n: 2 }))
      return [payload, value]
    })
    durably.start()
    const { output } = await job.triggerAndWait({ n: 1 })
    expect(output).toEqual([{ n: 1 }, { n: 2 }])
  })

  it('may trigger, read and leave while they are called', async () => {
    const durably = bench.open()
    const second = durably.defineJob({ name: 'second', input: anything }, () => 'second')
    const first = durably.defineJob({ name: 'first', input: anything }, () => 'first')
    const off = durably.on('run:complete', ({ jobName }) => {
      if (jobName !== 'first') return
      off()
      void second.trigger({})
    })
    durably.start()
    await first.trigger({})
    await settled()
    expect(await second.getRuns()).toMatchObject([{ status: 'completed', output: 'second' }])
  })

  it('of onError may throw, and go', async () => {
    const logged: unknown[] = []
    const durably = bench.open({ logger: { error: (...parts: unknown[]) => logged.push(parts) } })
    const off = durably.onError(() => {
      throw new Error('worse')
    })
    durably.on('run:trigger', () => {
      throw new Error('bad')
    })
    const job = durably.defineJob({ name: 'job', input: anything }, () => {})
    await job.trigger({})
    expect(logged).toHaveLength(1)
    off()
    await job.trigger({})
    expect(logged).toHaveLength(2)
    expect(logged[1]).toEqual([
      expect.stringContaining('listener of run:trigger'),
      expect.objectContaining({ message: 'bad' }),
    ])
  })

  it('of onError may be async and reject; the logger hears of it', async () => {
    const logged: unknown[][] = []
    const durably = bench.open({ logger: { error: (...parts: unknown[]) => logged.push(parts) } })
    durably.onError(async () => {
      throw new Error('worse')
    })
    durably.reportError(new Error('bad'), 'test')
    await settled()
    expect(logged).toEqual([[expect.stringContaining('onError'), expect.objectContaining({ message: 'worse' })]])
  })

  it('are not needed for the process to survive a logger that rejects', async () => {
    const logger = { error: () => Promise.reject(new Error('the logger is away')) }
    const durably = bench.open({ logger })
    durably.reportError(new Error('bad'), 'test')
    durably.onError(() => Promise.reject(new Error('worse')))
    durably.reportError(new Error('bad'), 'test')
    await settled()
    expect(durably.health().trouble).toBe(null)
  })

  it('number what is emitted from outside along with the rest', async () => {
    const durably = bench.open()
    const events = recordEvents(durably)
    durably.emit({ type: 'step:chunk', runId: 'r', jobName: 'j', stepName: 's', stepIndex: 0, chunk: 1 })
    durably.emit({ type: 'job:unknown', jobName: 'j' })
    expect(events).toEqual([
      {
        type: 'step:chunk',
        runId: 'r',
        jobName: 'j',
        stepName: 's',
        stepIndex: 0,
        chunk: 1,
        timestamp: at,
        sequence: 1,
      },
      { type: 'job:unknown', jobName: 'j', timestamp: at, sequence: 2 },
    ])
  })
})

describe('progress', () => {
  it('can be read while the run goes on, and is told at once', async () => {
    const gate = createGate()
    const { durably, run, events } = await bench.perform(async (ctx) => {
      ctx.progress(45, 100, 'Fetched users')
      await gate.opened
    })
    expect(events.at(-1)).toMatchObject({
      type: 'run:progress',
      progress: { current: 45, total: 100, message: 'Fetched users' },
    })
    await bench.clock.advance(250)
    expect(await durably.getRun(run.id)).toMatchObject({
      progress: { current: 45, total: 100, message: 'Fetched users' },
    })
    gate.open()
  })

  it('keeps what is left out', async () => {
    const { now } = await bench.perform((ctx) => {
      ctx.progress(0, 100, 'Starting')
      ctx.progress(10)
      ctx.progress(20, undefined, 'Half way')
    })
    expect((await now()).progress).toEqual({ current: 20, total: 100, message: 'Half way' })
  })

  it('has no total and no message when none was given', async () => {
    const { now } = await bench.perform((ctx) => ctx.progress(3))
    expect((await now()).progress).toEqual({ current: 3 })
  })

  it('stays when the run ends in failure, and when it goes on', async () => {
    const { durably, run, now } = await bench.perform(async (ctx) => {
      if (ctx.attempt === 1) {
        ctx.progress(1, 10, 'one')
        throw new Error('no')
      }
      ctx.progress(2)
    })
    expect(await now()).toMatchObject({ status: 'failed', progress: { current: 1, total: 10, message: 'one' } })
    await durably.retry(run.id)
    await settled()
    expect((await now()).progress).toEqual({ current: 2, total: 10, message: 'one' })
  })

  it('can be set from a body, through ctx or the step', async () => {
    const { now, events } = await bench.perform((ctx) =>
      ctx.run('step', ({ progress }) => {
        ctx.progress(1)
        progress(2, 4)
      }),
    )
    expect((await now()).progress).toEqual({ current: 2, total: 4 })
    expect(events.filter(({ type }) => type === 'run:progress')).toHaveLength(2)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('refuses %s', async (current) => {
    const { run } = await bench.perform((ctx) => ctx.progress(current))
    expect(run).toMatchObject({ status: 'failed', errorDetail: { code: 'INVALID_OPTION' } })
  })
})
