import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
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

const SHORT: readonly (readonly [RegExp, string])[] = [
  [/^core\/src\//, ''],
  [/^storage-kysely\/src\//, 'sql/'],
  [/\.ts$/, ''],
]

const nameOf = (file: string) => SHORT.reduce((name, [long, short]) => name.replace(long, short), file)

/** Those that ARCHITECTURE.md names on the way, in its order. */
function filesTold(): readonly string[] {
  const page = readFileSync(join(import.meta.dirname, '../../../ARCHITECTURE.md'), 'utf8')
  const [, section = ''] = page.split('### The files of that way\n')
  const [table = ''] = section.split('\n## ')
  return [...table.matchAll(/`([a-z-]+(?:\/[a-z0-9-]+)+)`/g)].map(([, name = '']) => name)
}

/** Whoever makes the way longer, or shorter, sees it here, and says so in ARCHITECTURE.md. */
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
  expect([...filesTold()].sort()).toEqual(own.map(nameOf).sort())
  await expect(`${own.join('\n')}\n`).toMatchFileSnapshot('path-of-a-run.txt')
})
