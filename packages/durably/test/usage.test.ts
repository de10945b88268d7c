import { LibsqlDialect } from '@libsql/kysely-libsql'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import type { RunCompleteEvent, RunFailEvent } from '../src/index'
import { createDurably } from '../src/index'
import { withLogPersistence } from '../src/plugins'
import { DATABASES } from './databases'
import { newFile, openMigrated } from './instances'

/** Stands in for the outer world of the example. */
function world() {
  const saved: string[] = []
  return {
    saved,
    api: { fetchUsers: async (orgId: string) => [`${orgId}/ann`, `${orgId}/bob`] },
    db: { upsertUsers: async (users: readonly string[]) => void saved.push(...users) },
  }
}

describe('the first example', () => {
  it('runs as it is written, on a bare dialect', async () => {
    const { api, db, saved } = world()
    const dialect = new LibsqlDialect({ url: `file:${newFile()}` })
    const durably = createDurably({ dialect })

    const syncUsers = durably.defineJob(
      {
        name: 'sync-users',
        input: z.object({ orgId: z.string() }),
        output: z.object({ syncedCount: z.number() }),
      },
      async (ctx, payload) => {
        ctx.log.info('starting sync', { orgId: payload.orgId })

        const users = await ctx.run('fetch-users', async () => {
          const result = await api.fetchUsers(payload.orgId)
          ctx.log.info('fetched users', { count: result.length })
          return result
        })

        await ctx.run('save-to-db', async () => {
          await db.upsertUsers(users)
        })

        ctx.log.info('sync completed')
        return { syncedCount: users.length }
      },
    )

    await durably.migrate()
    durably.start()
    const { id } = await syncUsers.trigger({ orgId: 'org_123' })
    const { output } = await syncUsers.wait(id)

    expectTypeOf(output).toEqualTypeOf<{ syncedCount: number }>()
    expect(output).toEqual({ syncedCount: 2 })
    expect(saved).toEqual(['org_123/ann', 'org_123/bob'])
    await durably.stop()
    await durably.close()
  })
})

describe.each(DATABASES)('on $name', ({ dialect }) => {
  it('events tell of a run while it happens', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const heard: string[] = []
    durably.on('run:start', (event) => heard.push(`started ${event.runId}`))
    durably.on('run:complete', (event: RunCompleteEvent) => heard.push(`completed ${event.runId}`))
    durably.on('run:fail', (event: RunFailEvent) => heard.push(`failed ${event.failedStepName}: ${event.error}`))
    durably.on('step:complete', (event) => {
      expectTypeOf(event.duration).toEqualTypeOf<number>()
      heard.push(`step ${event.stepName}`)
    })
    const job = durably.defineJob({ name: 'half', input: z.object({ fails: z.boolean() }) }, async (ctx, { fails }) => {
      await ctx.run('first', () => 1)
      await ctx.run('second', () => {
        if (fails) throw new Error('no')
      })
    })
    const [good, bad] = await job.batchTrigger([{ payload: { fails: false } }, { payload: { fails: true } }])
    await durably.runUntilIdle()
    expect(heard).toEqual([
      `started ${good?.id}`,
      'step first',
      'step second',
      `completed ${good?.id}`,
      `started ${bad?.id}`,
      'step first',
      'failed second: no',
    ])
  })

  it('what a job logs is kept with the plugin, and events carry it without', async () => {
    const durably = await openMigrated(dialect(newFile()))
    durably.use(withLogPersistence())
    const written: unknown[] = []
    durably.on('log:write', ({ level, message, data, stepName }) => written.push({ level, message, data, stepName }))
    const job = durably.defineJob({ name: 'log', input: z.object({}) }, async (ctx) => {
      ctx.log.info('begin', { n: 1 })
      await ctx.run('step', () => ctx.log.warn('odd'))
    })
    const { id } = await job.trigger({})
    await durably.runUntilIdle()
    expect(await durably.getLogs(id)).toMatchObject(written)
    expect(written).toEqual([
      { level: 'info', message: 'begin', data: { n: 1 }, stepName: null },
      { level: 'warn', message: 'odd', data: undefined, stepName: 'step' },
    ])
    const events = await durably.getEvents(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events.at(-1)).toMatchObject({ type: 'run:complete' })
  })

  it('failed runs are found and run again', async () => {
    const durably = await openMigrated(dialect(newFile()))
    let broken = true
    const job = durably.defineJob({ name: 'flaky', input: z.object({ n: z.number() }) }, async (ctx, { n }) => {
      const base = await ctx.run('base', () => n * 10)
      if (broken) throw new Error('no luck')
      return base
    })
    await job.batchTrigger([{ payload: { n: 1 } }, { payload: { n: 2 } }])
    await durably.runUntilIdle()
    broken = false

    const failedRuns = await durably.getRuns({ status: 'failed' })
    expect(failedRuns).toHaveLength(2)
    for (const run of failedRuns) await durably.retry(run.id)

    await durably.runUntilIdle()
    expect((await job.getRuns({ status: 'completed' })).map(({ output }) => output)).toEqual([20, 10])
    expect(await durably.getRuns({ status: 'failed' })).toEqual([])
  })

  it('progress can be read from outside while the job runs', async () => {
    const durably = await openMigrated(dialect(newFile()))
    const seen: unknown[] = []
    const job = durably.defineJob(
      { name: 'import', input: z.object({ users: z.array(z.string()) }) },
      async (ctx, { users }) => {
        ctx.progress(0, 100, 'Starting...')
        for (const [index, user] of users.entries()) {
          await ctx.run(`process-user-${user}`, () => user)
          ctx.progress(10 + ((index + 1) / users.length) * 90)
        }
        await ctx.run('look', async () => seen.push((await durably.getRun(ctx.runId))?.progress))
      },
    )
    const { id } = await job.trigger({ users: ['a', 'b'] })
    await durably.runUntilIdle()
    expect(seen).toMatchObject([{ total: 100, message: 'Starting...' }])
    expect((await durably.getRun(id))?.progress).toEqual({ current: 100, total: 100, message: 'Starting...' })
  })
})
