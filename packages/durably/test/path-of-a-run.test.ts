import { Session } from 'node:inspector/promises'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { betterSqlite3 } from '../src/better-sqlite3'
import { createDurably } from '../src/index'
import { createFakeClock } from '../src/testing'

/** The files of the packages of which a function is called meanwhile. */
async function filesPassed(work: () => Promise<unknown>): Promise<readonly string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  return result.flatMap(({ url, functions }) => {
    const file = /\/packages\/(.*\/src\/.*)$/.exec(url)?.[1]
    const isCalled = functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0)
    return file !== undefined && isCalled ? [file] : []
  })
}

/** Whoever makes the way longer, or shorter, sees it here; ARCHITECTURE.md goes along it. */
it('a run of one step passes these files from trigger to completed', async () => {
  const clock = createFakeClock()
  const durably = createDurably({ dialect: betterSqlite3(':memory:'), environment: { clock }, logger: null })
  await durably.migrate()
  const job = durably.defineJob({ name: 'greet', input: z.object({}) }, (ctx) => ctx.run('say', () => 'hello'))
  durably.start()
  await job.triggerAndWait({})
  const completed = new Promise((resolve) => durably.on('run:complete', resolve))
  const files = await filesPassed(async () => {
    await job.trigger({})
    await completed
  })
  await durably.close()
  const own = files.filter((file) => !file.startsWith('core/src/testing/')).sort()
  await expect(`${own.join('\n')}\n`).toMatchFileSnapshot('path-of-a-run.txt')
})
