import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { PermanentError, RunFailedError, type SqlDurably } from '../src/index'
import { DATABASES } from './databases'
import { newFile, openMigrated } from './instances'

const nothing = z.object({})

/** Every kind of wait after another, and what really ran. */
function orderJob(durably: SqlDurably, ran: string[]) {
  const mail = durably.defineJob({ name: 'mail', input: z.object({ to: z.string() }) }, (_ctx, { to }) => {
    ran.push(`mail ${to}`)
    return `mailed ${to}`
  })
  return durably.defineJob({ name: 'order', input: nothing }, async (ctx) => {
    const stock = await ctx.run('reserve', { retry: { maxAttempts: 3, delay: 1 } }, ({ attempt }) => {
      ran.push(`reserve ${attempt}`)
      if (attempt < 3) throw new Error('out of stock')
      return attempt
    })
    await ctx.sleep('a moment', 5)
    const { by } = await ctx.waitFor('approval', { schema: z.object({ by: z.string() }) })
    const child = await ctx.trigger('send', mail, { to: by })
    return { stock, mail: await ctx.wait('sent', child) }
  })
}

/** Until there is nothing to do, also not later. */
async function drain(durably: SqlDurably): Promise<void> {
  for (;;) {
    const { nextWakeAt } = await durably.runUntilIdle()
    if (nextWakeAt === null) return
  }
}

describe.each(DATABASES)('waits on $name', ({ dialect }) => {
  it('are put away in the database and come back in another process', async () => {
    const file = newFile()
    const ran: string[] = []
    const before = await openMigrated(dialect(file))
    const { id } = await orderJob(before, ran).trigger({})
    await drain(before)
    expect(ran).toEqual(['reserve 1', 'reserve 2', 'reserve 3'])
    expect(await before.getRun(id)).toMatchObject({
      status: 'pending',
      availableAt: null,
      waitingFor: { kind: 'steps', steps: ['approval'] },
    })
    await before.close()

    const after = await openMigrated(dialect(file))
    orderJob(after, ran)
    await after.signal(id, 'approval', { by: 'ada' })
    await drain(after)
    expect(await after.getRun(id)).toMatchObject({ status: 'completed', output: { stock: 3, mail: 'mailed ada' } })
    expect(ran).toEqual(['reserve 1', 'reserve 2', 'reserve 3', 'mail ada'])
    expect((await after.getSteps(id)).map(({ name, kind, status }) => `${name} ${kind} ${status}`)).toEqual([
      'reserve run failed',
      'reserve run failed',
      'reserve run completed',
      'a moment sleep completed',
      'approval signal completed',
      'send trigger completed',
      'sent child completed',
    ])
  })

  it('reject with the same errors in every process', async () => {
    const file = newFile()
    const caught: unknown[][] = []
    const open = async () => {
      const durably = await openMigrated(dialect(file))
      const child = durably.defineJob({ name: 'child', input: z.object({ text: z.string() }) }, () => {
        throw Object.assign(new RangeError('NUL \0 and half \ud800'), { code: 'E_FAR' })
      })
      const job = durably.defineJob({ name: 'job', input: nothing }, async (ctx) => {
        const errors: unknown[] = []
        const keep = (error: unknown) => errors.push(error)
        await ctx.run('odd', () => Promise.reject(new RangeError('half \ud800'))).catch(keep)
        await ctx.run('late', { timeout: 1 }, () => new Promise(() => {})).catch(keep)
        const run = await ctx.trigger('start', child, { text: 'half \ud800' })
        await ctx.wait('end', run).catch(keep)
        caught.push(errors)
        await ctx.waitFor('go')
      })
      return { durably, job }
    }
    const first = await open()
    const { id } = await first.job.trigger({})
    await drain(first.durably)
    await first.durably.close()
    const second = await open()
    await second.durably.signal(id, 'go')
    await drain(second.durably)
    expect(await second.durably.getRun(id)).toMatchObject({ status: 'completed' })
    expect(caught.at(-1)).toEqual(caught.at(-2))
    const [odd, late, end] = caught.at(-1) ?? []
    expect([odd, late, end].map((error) => (error as Error).name)).toEqual([
      'StepError',
      'TimeoutError',
      'RunFailedError',
    ])
    expect(end).toMatchObject({ run: { payload: { text: 'half \ud800' }, errorDetail: { code: 'E_FAR' } } })
    expect(end).toBeInstanceOf(RunFailedError)
  })

  it('keep a signal that comes early, and tell a failure of a child', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const child = durably.defineJob({ name: 'child', input: nothing, retry: { maxAttempts: 9, delay: 0 } }, () => {
      throw new PermanentError('no use')
    })
    const parent = durably.defineJob({ name: 'parent', input: nothing }, async (ctx) => {
      await ctx.waitFor('go')
      await ctx.wait('done', await ctx.trigger('start', child, {}))
    })
    const { id } = await parent.trigger({})
    await durably.signal(id, 'go', null, { dedupeKey: 'once' })
    expect(await durably.signal(id, 'go', null, { dedupeKey: 'once' })).toEqual({ deduplicated: true })
    await drain(durably)
    expect(await durably.getRun(id)).toMatchObject({ status: 'failed', error: expect.stringContaining('no use') })
    expect(await durably.signal(id, 'go', null, { dedupeKey: 'once' })).toEqual({ deduplicated: true })
    expect(await child.getRuns()).toMatchObject([{ status: 'failed', attempt: 1, parentRunId: id }])
  })

  it('try a run again by its policy', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const flaky = durably.defineJob(
      { name: 'flaky', input: nothing, retry: { maxAttempts: 3, delay: 1 } },
      async (ctx) => {
        await ctx.run('kept', () => 1)
        if (ctx.attempt < 3) throw new Error('not yet')
        return ctx.attempt
      },
    )
    const { id } = await flaky.trigger({})
    await drain(durably)
    expect(await flaky.getRun(id)).toMatchObject({ status: 'completed', output: 3, attempt: 3, error: null })
    expect(await durably.getSteps(id)).toHaveLength(1)
  })
})
