import { afterEach, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { createDurably, defineJob, type Durably, type DurablyEvent, type DurablyOptions } from '../index'
import { createMemoryStorage } from '../memory/memory-storage'

const open: Durably[] = []

function instance(options: Partial<DurablyOptions> = {}): Durably {
  const durably = createDurably({ storage: createMemoryStorage(), logger: null, ...options })
  open.push(durably)
  return durably
}

afterEach(async () => {
  for (const durably of open.splice(0)) await durably.close()
})

const nothing = z.object({})

describe('a job', () => {
  it('runs its steps in order and stores what it returns', async () => {
    const durably = instance()
    const job = durably.defineJob(
      {
        name: 'add',
        input: z.object({ a: z.number(), b: z.number().default(2) }),
        output: z.object({ sum: z.number() }),
      },
      async (ctx, { a, b }) => {
        const sum = await ctx.run('sum', () => a + b)
        expectTypeOf(sum).toEqualTypeOf<number>()
        const doubled = await ctx.run<number>('double', async () => sum * 2)
        return { sum: doubled }
      },
    )
    durably.start()
    const { output } = await job.triggerAndWait({ a: 1 })
    expectTypeOf(output).toEqualTypeOf<{ sum: number }>()
    expect(output).toEqual({ sum: 6 })
    const [run] = await job.getRuns()
    expect(run).toMatchObject({ status: 'completed', currentStepIndex: 2, payload: { a: 1, b: 2 }, attempt: 1 })
    if (run?.status === 'completed') expectTypeOf(run.output).toEqualTypeOf<{ sum: number }>()
  })

  it('is a value that several instances can register', async () => {
    const greet = defineJob({ name: 'greet', input: z.object({ who: z.string() }) }, (_ctx, { who }) => `hello ${who}`)
    const durably = instance()
    const { hello } = durably.register({ hello: greet })
    expectTypeOf(hello.name).toEqualTypeOf<'greet'>()
    durably.start()
    const { output } = await hello.triggerAndWait({ who: 'you' })
    expectTypeOf(output).toEqualTypeOf<string>()
    expect(output).toBe('hello you')
  })

  it('goes on from the last completed step after a retry by hand', async () => {
    const durably = instance()
    const ran: string[] = []
    let broken = true
    const job = durably.defineJob({ name: 'flaky', input: nothing }, async (ctx) => {
      await ctx.run('first', () => void ran.push('first'))
      await ctx.run('second', () => {
        ran.push('second')
        if (broken) throw new Error('no luck')
      })
    })
    const failed: DurablyEvent<'run:fail'>[] = []
    durably.on('run:fail', (event) => failed.push(event))
    durably.start()
    const run = await job.trigger({})
    await expect(job.wait(run.id)).rejects.toMatchObject({
      code: 'RUN_FAILED',
      run: { status: 'failed', error: 'no luck' },
    })
    expect(failed).toMatchObject([{ runId: run.id, failedStepName: 'second', error: 'no luck' }])
    broken = false
    await durably.retry(run.id)
    await job.wait(run.id)
    expect(ran).toEqual(['first', 'second', 'second'])
    expect(await job.getRun(run.id)).toMatchObject({ status: 'completed', attempt: 2, error: null })
  })
})
