import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Durably, EventType } from '../index'
import type { RecordedHistory } from '../extend'
import {
  anything,
  type Bench,
  createBench,
  createGate,
  createMortal,
  found,
  type JobBody,
  recordEvents,
} from '../testing/test-bench'
import { settled } from '../testing/fake-clock'

let bench: Bench

beforeEach(() => {
  bench = createBench()
})

afterEach(() => bench.close())

async function recorded(
  execute: JobBody,
  records: RecordedHistory = { events: true },
  options: Parameters<Bench['open']>[0] = {},
) {
  const durably = bench.open(options)
  durably.use({ name: 'history', records })
  const heard = recordEvents(durably)
  const job = durably.defineJob({ name: 'job', input: anything }, execute)
  durably.start()
  await settled()
  const { id } = await job.trigger({ in: 1 })
  await settled()
  return { durably, job, id, heard }
}

const typesOf = async (durably: Durably, id: string) => (await durably.getEvents(id)).map(({ type }) => type)

describe('stored events', () => {
  it('are those of the run, numbered from 1 without a gap', async () => {
    const { durably, id } = await recorded((ctx) => ctx.run('a', () => ({ n: 1 })))
    const events = await durably.getEvents(id)
    const ids = { runId: id, jobName: 'job', timestamp: expect.any(String) }
    expect(events).toEqual([
      { type: 'run:trigger', ...ids, payload: { in: 1 }, seq: 1 },
      { type: 'run:start', ...ids, payload: { in: 1 }, seq: 2 },
      { type: 'step:start', ...ids, stepName: 'a', stepIndex: 0, seq: 3 },
      { type: 'step:complete', ...ids, stepName: 'a', stepIndex: 0, output: { n: 1 }, duration: 0, seq: 4 },
      { type: 'run:complete', ...ids, output: { n: 1 }, duration: 0, seq: 5 },
    ])
    expect(await durably.getRun(id)).toMatchObject({ lastEventSequence: 5 })
  })

  it('carry the same number when they are told here', async () => {
    const { durably, id, heard } = await recorded(async (ctx) => {
      await Promise.all(['a', 'b', 'c'].map((name) => ctx.run(name, () => name)))
      await ctx.run('bad', () => Promise.reject(new Error('no'))).catch(() => {})
    })
    const stored = await durably.getEvents(id)
    const told = heard.filter(({ seq }) => seq !== undefined)
    expect(told.length).toBeGreaterThan(5)
    for (const event of told) {
      const twin = found(stored.find(({ seq }) => seq === event.seq))
      expect(twin.type).toBe(event.type)
      if ('stepName' in event) expect(twin).toMatchObject({ stepName: event.stepName })
    }
  })

  it('have no number when nothing is stored', async () => {
    const { events, durably, run } = await bench.perform((ctx) => ctx.run('a', () => 1))
    expect(events.every((event) => !('seq' in event))).toBe(true)
    expect(await durably.getEvents(run.id)).toEqual([])
    expect(await durably.getRun(run.id)).toMatchObject({ lastEventSequence: 0 })
  })

  it('are only the types that are wanted', async () => {
    const types: EventType[] = ['run:start', 'run:fail']
    const { durably, id } = await recorded(() => Promise.reject(new Error('no')), { events: types })
    expect(await durably.getEvents(id)).toMatchObject([
      { type: 'run:start', seq: 1 },
      { type: 'run:fail', error: 'no', failedStepName: null, seq: 2 },
    ])
  })

  it('come in pages', async () => {
    const { durably, id } = await recorded(async (ctx) => {
      for (const name of ['a', 'b', 'c']) await ctx.run(name, () => {})
    })
    const all = await durably.getEvents(id)
    const pages = []
    let after = 0
    for (;;) {
      const page = await durably.getEvents(id, { after, limit: 2 })
      pages.push(...page)
      after = page.at(-1)?.seq ?? after
      if (page.length < 2) break
    }
    expect(pages).toEqual(all)
    await expect(durably.getEvents(id, { limit: -1 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('tell of commands', async () => {
    const { durably, id, job, heard } = await recorded(() => Promise.reject(new Error('no')))
    await durably.retry(id)
    await settled()
    expect(await typesOf(durably, id)).toEqual([
      'run:trigger',
      'run:start',
      'run:fail',
      'run:retry',
      'run:start',
      'run:fail',
    ])
    const told = found(heard.find(({ type }) => type === 'run:retry'))
    const { sequence: _, ...retry } = told
    expect((await durably.getEvents(id))[3]).toEqual(retry)
    const waiting = await job.trigger({}, { delay: 1000 })
    await durably.cancel(waiting.id)
    expect(await durably.getEvents(waiting.id)).toMatchObject([
      { type: 'run:trigger' },
      { type: 'run:cancel', requested: false },
    ])
  })

  it('tell of a cancel twice: asked for, and done', async () => {
    const { durably, id } = await recorded(
      (ctx) => new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
    )
    await durably.cancel(id)
    await settled()
    expect(await durably.getEvents(id)).toMatchObject([
      { type: 'run:trigger' },
      { type: 'run:start' },
      { type: 'run:cancel', requested: true },
      { type: 'run:cancel', requested: false },
    ])
  })

  it('tell of a start soon, also while the step takes long', async () => {
    const gate = createGate()
    const { durably, id } = await recorded((ctx) => ctx.run('long', () => gate.opened))
    await bench.clock.advance(100)
    expect(await typesOf(durably, id)).toEqual(['run:trigger', 'run:start', 'step:start'])
    gate.open()
    await settled()
    expect(await typesOf(durably, id)).toEqual([
      'run:trigger',
      'run:start',
      'step:start',
      'step:complete',
      'run:complete',
    ])
  })

  it('are written by recovery, and go on under the next worker without a gap', async () => {
    const mortal = createMortal(bench.storage)
    const { id } = await recorded(
      (ctx) => ctx.run('a', () => 1).then(() => new Promise(() => {})),
      { events: true },
      {
        storage: mortal.storage,
        workerId: 'dead',
      },
    )
    mortal.kill()
    const second = bench.open()
    second.use({ name: 'history', records: { events: true } })
    const heard = recordEvents(second, ['run:recover'])
    second.defineJob({ name: 'job', input: anything }, (ctx) => ctx.run('a', () => 2))
    second.start()
    await settled()
    await second.recover({ workerId: 'dead' })
    await settled()
    const events = await second.getEvents(id)
    expect(events.map(({ type }) => type)).toEqual([
      'run:trigger',
      'run:start',
      'step:start',
      'step:complete',
      'run:recover',
      'run:start',
      'run:complete',
    ])
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(heard).toMatchObject([{ seq: 5 }])
  })

  it('tell of everything that happens to a run', async () => {
    let fails = true
    const { durably, job } = await recorded(async (ctx) => {
      ctx.progress(1, 2)
      await ctx.sleep('a moment', 500)
      await ctx.waitFor('go')
      await ctx.run('try', { retry: { maxAttempts: 2, delay: 10 } }, () => {
        if (fails) throw new Error('no')
      })
      const child = await ctx.trigger('another', childJob, {})
      await ctx.wait('its end', child)
    })
    const childJob = durably.defineJob({ name: 'child', input: anything }, () => 'done')
    const { id } = await job.trigger({}, { delay: 1000 })
    await durably.signal(id, 'go', 'not stored twice', { dedupeKey: 'once' })
    await durably.signal(id, 'go', 'a double', { dedupeKey: 'once' })
    await durably.cancel(id)
    await durably.retry(id)
    await bench.clock.advance(2000)
    fails = false
    await durably.retry(id)
    await bench.clock.advance(2000)
    const events = await durably.getEvents(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events.map((event) => ('stepName' in event ? `${event.type} ${event.stepName}` : event.type))).toEqual([
      'run:trigger',
      'run:signal',
      'run:cancel',
      'run:retry',
      'run:start',
      'run:progress',
      'step:start a moment',
      'run:suspend',
      'run:start',
      'run:progress',
      'step:complete a moment',
      'step:complete go',
      'step:start try',
      'step:fail try',
      'run:suspend',
      'run:start',
      'run:progress',
      'step:start try',
      'step:fail try',
      'run:fail',
      'run:retry',
      'run:start',
      'run:progress',
      'step:start try',
      'step:complete try',
      'step:complete another',
      'step:start its end',
      'run:suspend',
      'run:start',
      'run:progress',
      'step:complete its end',
      'run:complete',
    ])
    expect(events[1]).toMatchObject({ runId: id, jobName: 'job', signalName: 'go' })
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', lastEventSequence: events.length })
  })

  it('have what was logged in its place, stored once', async () => {
    const { durably, id } = await recorded(
      async (ctx) => {
        ctx.log.info('first', { n: 1 })
        await ctx.run('a', (step) => step.log.warn('second'))
      },
      { events: true, logs: true },
    )
    const events = await durably.getEvents(id)
    expect(events.map(({ type }) => type)).toEqual([
      'run:trigger',
      'run:start',
      'log:write',
      'step:start',
      'log:write',
      'step:complete',
      'run:complete',
    ])
    expect(events[2]).toEqual({
      type: 'log:write',
      runId: id,
      jobName: 'job',
      stepName: null,
      level: 'info',
      message: 'first',
      data: { n: 1 },
      seq: 3,
      timestamp: expect.any(String),
    })
    expect(events[4]).toMatchObject({ stepName: 'a', level: 'warn', message: 'second', seq: 5 })
    expect(JSON.stringify(await bench.storage.events.getEvents(id, {}))).not.toContain('second')
    expect(await durably.getLogs(id)).toMatchObject([{ message: 'first' }, { message: 'second' }])
  })

  it('have no logs where only events or only logs are wanted', async () => {
    for (const records of [{ events: true }, { logs: true }, { logs: true, events: ['run:start'] as const }]) {
      const durably = bench.open().use({ name: 'history', records })
      const job = durably.defineJob({ name: `job ${JSON.stringify(records)}`, input: anything }, (ctx) => {
        ctx.log.info('line')
      })
      durably.start()
      const { id } = await job.trigger({})
      await settled()
      expect(await typesOf(durably, id)).not.toContain('log:write')
      expect(await durably.getLogs(id)).toHaveLength(records.logs === true ? 1 : 0)
    }
  })

  it('say so where somebody removed a log by hand', async () => {
    const { durably, id } = await recorded((ctx) => ctx.log.info('line'), { events: true, logs: true })
    const storage = { ...bench.storage, logs: { ...bench.storage.logs, findLogs: async () => [] } }
    expect((await durably.getEvents(id))[2]).toMatchObject({ type: 'log:write', message: 'line' })
    expect((await bench.open({ storage }).getEvents(id))[2]).toMatchObject({ type: 'log:write', message: '[removed]' })
  })

  it('go with the run', async () => {
    const { durably, id, heard } = await recorded((ctx) => ctx.log.info('line'), { events: true, logs: true })
    await durably.deleteRun(id)
    // Told here, and stored nowhere.
    expect(heard.at(-1)).toMatchObject({ type: 'run:delete', runId: id })
    expect(heard.at(-1)).not.toHaveProperty('seq')
    expect(await durably.getEvents(id)).toEqual([])
    expect(await durably.getLogs(id)).toEqual([])
  })

  it('cost no commit of their own for short steps', async () => {
    let commits = 0
    const storage = {
      ...bench.storage,
      commit(...args: Parameters<typeof bench.storage.commit>) {
        commits += 1
        return bench.storage.commit(...args)
      },
    }
    await recorded(
      async (ctx) => {
        for (let n = 0; n < 5; n++) await ctx.run(`${n}`, () => {})
      },
      { events: true, logs: true },
      { storage },
    )
    expect(commits).toBe(6)
  })
})
