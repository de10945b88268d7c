import { join } from 'node:path'
import * as core from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { build } from 'esbuild'
import { expect, it } from 'vitest'
import { ROOT } from './root'

/** A program that takes these names of core and nothing else, as a bundler leaves it. */
async function bundled(names: readonly string[]): Promise<{ readonly exports: typeof core; readonly text: string }> {
  const { outputFiles } = await build({
    stdin: { contents: `export { ${names.join(', ')} } from '@coji/durably-core'`, resolveDir: join(ROOT, 'test') },
    ...{ bundle: true, minify: true, format: 'esm', conditions: ['@coji/durably-source'], write: false },
  })
  const [{ text } = { text: '' }] = outputFiles
  const exports = (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as typeof core
  return { exports, text }
}

it('an error of a bundle that has nothing else is known to another copy of core', async () => {
  const { exports: alone, text } = await bundled(['PermanentError'])
  const error = new alone.PermanentError('No such card.')
  expect(error).toBeInstanceOf(core.PermanentError)
  expect(new core.PermanentError('no')).toBeInstanceOf(alone.PermanentError)
  expect(new core.TimeoutError('no')).not.toBeInstanceOf(alone.PermanentError)
  expect(text).not.toContain('RetryAfterError')

  const durably = core.createDurably({ storage: createMemoryStorage(), logger: null })
  const input = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const
  const job = durably.defineJob({ name: 'pay', input, retry: { maxAttempts: 3, delay: 0 } }, () =>
    Promise.reject(error),
  )
  const { id } = await job.trigger({})
  await durably.runUntilIdle()
  expect(await durably.getRun(id)).toMatchObject({ status: 'failed', attempt: 1 })
  await durably.close()
})

it('each class of errors keeps its own brand, and its subclasses have it', async () => {
  const classes = Object.entries(core).filter(([name]) => name.endsWith('Error')) as [
    string,
    typeof core.PermanentError,
  ][]
  const names = classes.map(([name]) => name)
  const { exports } = await bundled(names)
  for (const [name, type] of Object.entries(exports)) {
    const made: unknown = Object.create((type as typeof core.PermanentError).prototype)
    const known = classes.flatMap(([other, here]) => (made instanceof here ? [other] : []))
    expect(known.sort()).toEqual([...new Set(['DurablyError', name])].sort())
  }
})
