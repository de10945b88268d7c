import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDurably, type Durably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { transformSync } from 'esbuild'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { blocksOf } from './docs-blocks'
import { ROOT } from './root'

interface Recipe {
  followOverHttp(durably: Durably, id: string, request: Request): Promise<Response>
}

async function recipe(): Promise<Recipe> {
  const blocks = blocksOf('docs/history.md', readFileSync(join(ROOT, 'docs', 'history.md'), 'utf8'))
  const { code } = transformSync(blocks.find(({ file }) => file === 'follow.ts')?.code ?? '', { loader: 'ts' })
  return import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(code)}`)
}

async function endedRun(durably: Durably): Promise<string> {
  durably.use({ name: 'history', records: { events: true } })
  const job = durably.defineJob({ name: 'job', input: z.object({}) }, (ctx) => ctx.run('step', () => 42))
  const { id } = await job.trigger({})
  await durably.runUntilIdle()
  return id
}

it('the recipe for server-sent events tells a run, goes on where a reader stopped, and answers 404 for no run', async () => {
  const { followOverHttp } = await recipe()
  const durably = createDurably({ storage: createMemoryStorage(), logger: null })
  const id = await endedRun(durably)
  const url = 'https://example.com/'

  const all = await (await followOverHttp(durably, id, new Request(url))).text()
  expect(all).toMatch(/^id: 1\ndata: \{"type":"run:trigger".*"type":"run:complete".*\n\nevent: done\ndata:\n\n$/s)

  const rest = await followOverHttp(durably, id, new Request(url, { headers: { 'last-event-id': '2' } }))
  expect(await rest.text()).toMatch(/^id: 3\n/)

  const none = await followOverHttp(durably, '01J00000000000000000000000', new Request(url))
  expect(none.status).toBe(404)
  await durably.close()
})
