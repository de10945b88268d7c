import { CapabilityMissingError, type Durably } from '@coji/durably-core'
import type { RecordedHistory } from '@coji/durably-core/extend'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { describe, expect, it } from 'vitest'
import { withLogPersistence } from '../src/index'
import { anything, instance } from './job-instance'

/** A run with two steps, three lines of log, progress and a result, or an error. */
async function runOnce(durably: Durably, fails = false): Promise<string> {
  const job = durably.defineJob({ name: 'import', input: anything }, async (ctx) => {
    ctx.log.info('begin', { rows: 2 })
    await ctx.run('read', (step) => {
      step.log.warn('slow file')
      return [1, 2]
    })
    ctx.progress(1, 2)
    await ctx.run('write', () => {
      if (fails) throw new Error('disk full')
    })
    ctx.log.error('odd', undefined)
    return 'done'
  })
  const run = await job.trigger({})
  await durably.runUntilIdle()
  return run.id
}

describe('withLogPersistence', () => {
  it('keeps the whole history of a run, numbered from 1 without a gap, when the run has ended', async () => {
    const durably = instance().use(withLogPersistence())
    const id = await runOnce(durably)
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed' })
    const events = await durably.getEvents(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events.map(({ type }) => type)).toEqual([
      'run:trigger',
      'run:start',
      'log:write',
      'step:start',
      'log:write',
      'step:complete',
      'run:progress',
      'step:start',
      'step:complete',
      'log:write',
      'run:complete',
    ])
    expect(events.filter(({ type }) => type === 'log:write')).toMatchObject([
      { runId: id, jobName: 'import', level: 'info', message: 'begin', data: { rows: 2 }, stepName: null, seq: 3 },
      { level: 'warn', message: 'slow file', stepName: 'read', seq: 5 },
      { level: 'error', message: 'odd', stepName: null, seq: 10 },
    ])
    expect(events.at(-1)).toMatchObject({ runId: id, jobName: 'import', output: 'done' })
    const logs = await durably.getLogs(id)
    expect(logs).toMatchObject([
      { level: 'info', message: 'begin', data: { rows: 2 }, stepName: null },
      { level: 'warn', message: 'slow file', stepName: 'read' },
      { level: 'error', message: 'odd', stepName: null },
    ])
  })

  it('keeps the history of a failed run and adds that of its retry', async () => {
    const durably = instance().use(withLogPersistence())
    const id = await runOnce(durably, true)
    const failed = await durably.getEvents(id)
    expect(failed.slice(-2)).toMatchObject([
      { type: 'step:fail', stepName: 'write', error: 'disk full' },
      { type: 'run:fail', failedStepName: 'write', error: 'disk full' },
    ])
    await durably.retry(id)
    await durably.runUntilIdle()
    const all = await durably.getEvents(id)
    expect(all.slice(0, failed.length)).toEqual(failed)
    expect(all[failed.length]).toMatchObject({ type: 'run:retry', byHand: true, seq: failed.length + 1 })
  })

  it('numbers the live events as the stored ones', async () => {
    const durably = instance().use(withLogPersistence())
    const live: (number | undefined)[] = []
    durably.on('run:trigger', ({ seq }) => live.push(seq))
    durably.on('step:complete', ({ seq }) => live.push(seq))
    durably.on('run:complete', ({ seq }) => live.push(seq))
    const id = await runOnce(durably)
    const stored = (await durably.getEvents(id)).filter(({ type }) => /trigger|complete/.test(type))
    expect(live).toEqual(stored.map(({ seq }) => seq))
  })

  it('goes with the run when that is deleted', async () => {
    const durably = instance().use(withLogPersistence())
    const id = await runOnce(durably)
    await durably.deleteRun(id)
    expect([await durably.getEvents(id), await durably.getLogs(id)]).toEqual([[], []])
  })

  it('is what storing depends on: without it nothing is stored', async () => {
    const durably = instance()
    const id = await runOnce(durably)
    expect(await durably.getEvents(id)).toEqual([])
    expect(await durably.getLogs(id)).toEqual([])
    expect(await durably.getRun(id)).toMatchObject({ status: 'completed', lastEventSequence: 0 })
  })

  it('stores what `include` names and nothing else', async () => {
    const durably = instance().use(withLogPersistence({ include: { events: ['run:start', 'run:complete'] } }))
    const id = await runOnce(durably)
    const events = await durably.getEvents(id)
    expect(events.map(({ type, seq }) => [type, seq])).toEqual([
      ['run:start', 1],
      ['run:complete', 2],
    ])
    expect(await durably.getLogs(id)).toEqual([])
  })

  it('stores logs alone when `include` says so', async () => {
    const durably = instance().use(withLogPersistence({ include: { logs: true } }))
    const id = await runOnce(durably)
    expect(await durably.getEvents(id)).toEqual([])
    expect(await durably.getLogs(id)).toHaveLength(3)
  })

  it('decides on progress and chunks by themselves when `include` names them', async () => {
    const storedWith = async (include: RecordedHistory) => {
      const durably = instance().use(withLogPersistence({ include }))
      const id = await runOnce(durably)
      return (await durably.getEvents(id)).map(({ type, seq }) => `${seq} ${type}`)
    }
    const whole = await storedWith({ events: true })
    expect(whole).toHaveLength(8)
    expect(whole).toContain('5 run:progress')
    expect(await storedWith({ events: true, progress: false })).toHaveLength(7)
    expect(await storedWith({ events: true, chunks: false })).toEqual(whole)
    expect(await storedWith({ progress: true })).toEqual(['1 run:progress'])
    expect(await storedWith({ events: ['run:progress', 'run:start'], progress: false })).toEqual(['1 run:start'])
    expect(await storedWith({ events: ['run:start'], progress: true })).toEqual(['1 run:start', '2 run:progress'])
    expect(await storedWith({ events: false, chunks: true })).toEqual([])
  })

  it('refuses an event that does not exist', () => {
    const include = { events: ['run:begin' as never] }
    expect(() => instance().use(withLogPersistence({ include }))).toThrow(/"run:begin"/)
  })

  it('is refused by a storage that cannot keep what it wants', () => {
    const { events: _events, ...withoutEvents } = createMemoryStorage()
    const durably = instance({ storage: withoutEvents })
    expect(() => durably.use(withLogPersistence())).toThrow(CapabilityMissingError)
    expect(() => durably.use(withLogPersistence({ include: { chunks: true } }))).toThrow(CapabilityMissingError)
    expect(() => durably.use(withLogPersistence({ include: { logs: true } }))).not.toThrow()
  })
})
