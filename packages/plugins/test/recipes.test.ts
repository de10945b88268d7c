import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PermanentError } from '@coji/durably-core'
import { describe, expect, it } from 'vitest'
import { anything, instance } from './job-instance'
import { withErrorReporting } from './recipes/with-error-reporting'
import { withRetry } from './recipes/with-retry'
import { withStepTimeout } from './recipes/with-step-timeout'

describe('a retry plugin written outside core', () => {
  it('runs the job again over its recorded steps', async () => {
    const durably = instance().use(withRetry(3))
    const ran: string[] = []
    const job = durably.defineJob({ name: 'flaky', input: anything }, async (ctx) => {
      await ctx.run('first', () => void ran.push('first'))
      await ctx.run('second', () => {
        ran.push('second')
        if (ran.length < 4) throw new Error('no luck')
      })
      return ran.length
    })
    durably.start()
    expect(await job.triggerAndWait({})).toMatchObject({ output: 4 })
    expect(ran).toEqual(['first', 'second', 'second', 'second'])
  })

  it('gives up after its attempts, and at once when trying again is useless', async () => {
    const durably = instance().use(withRetry(3))
    let calls = 0
    const job = durably.defineJob({ name: 'broken', input: anything }, (_ctx, payload) => {
      calls += 1
      throw payload === 'useless' ? new PermanentError('never') : new Error('again')
    })
    durably.start()
    await expect(job.triggerAndWait('hopeful')).rejects.toMatchObject({ run: { status: 'failed', error: 'again' } })
    expect(calls).toBe(3)
    await expect(job.triggerAndWait('useless')).rejects.toMatchObject({ run: { status: 'failed', error: 'never' } })
    expect(calls).toBe(4)
  })
})

describe('a time-out plugin written outside core', () => {
  it('fails the step that takes too long, and that one only', async () => {
    const durably = instance().use(withStepTimeout(5))
    const job = durably.defineJob({ name: 'slow', input: anything }, async (ctx) => {
      await ctx.run('quick', () => 1)
      await ctx.run('stuck', () => new Promise(() => {}))
    })
    durably.start()
    const { id } = await job.trigger({})
    await expect(job.wait(id)).rejects.toMatchObject({ run: { error: 'Step "stuck" took longer than 5 ms.' } })
    const steps = await durably.getSteps(id)
    expect(steps.map(({ name, status }) => [name, status])).toEqual([
      ['quick', 'completed'],
      ['stuck', 'failed'],
    ])
  })
})

describe('an error-reporting plugin written outside core', () => {
  it('hears of errors of jobs and of listeners', async () => {
    const reports: [unknown, unknown][] = []
    const durably = instance().use(withErrorReporting((error, context) => reports.push([error, context])))
    const [ofJob, ofListener] = [new Error('job'), new Error('listener')]
    const job = durably.defineJob({ name: 'broken', input: anything }, () => {
      throw ofJob
    })
    durably.on('run:start', () => {
      throw ofListener
    })
    const run = await job.trigger({})
    await durably.runUntilIdle()
    expect(reports).toEqual([
      [ofListener, { during: 'listener of run:start' }],
      [ofJob, { runId: run.id, jobName: 'broken', attempt: 1 }],
    ])
  })

  it('does not hear of a run that is cancelled, nor of anything after close', async () => {
    const reports: unknown[] = []
    const durably = instance().use(withErrorReporting((error) => reports.push(error)))
    const job = durably.defineJob({ name: 'long', input: anything }, async (ctx) => {
      await ctx.run('wait', ({ signal }) => {
        void durably.cancel(ctx.runId)
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      })
    })
    const { id } = await job.trigger({})
    await durably.runUntilIdle()
    expect(await durably.getRun(id)).toMatchObject({ status: 'cancelled' })
    await durably.close()
    durably.on('job:unknown', () => {
      throw new Error('late')
    })
    durably.emit({ type: 'job:unknown', jobName: 'x' })
    expect(reports).toEqual([])
  })
})

describe('the recipes', () => {
  const here = import.meta.dirname
  const docs = readFileSync(join(here, '../../../docs/plugins.md'), 'utf8')

  it.each(['with-retry', 'with-step-timeout', 'with-error-reporting'])(
    '%s has under 30 lines, the same in the docs',
    (name) => {
      const source = readFileSync(join(here, 'recipes', `${name}.ts`), 'utf8').trim()
      expect(source.split('\n').length).toBeLessThan(30)
      expect(docs).toContain(source.replace('@coji/durably-core', '@coji/durably'))
    },
  )
})
