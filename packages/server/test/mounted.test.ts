import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { DurablyHandler } from '../src'
import { createDurablyClient } from '../src/client'
import { openApi } from './api'

interface Mount {
  readonly basePath?: string
  mount(handler: DurablyHandler): RequestListener
}

const MOUNTS: Readonly<Record<string, Mount>> = {
  'Hono, which takes its path off': {
    mount: (handler) => getRequestListener(new Hono().mount('/api/durably', handler).fetch),
  },
  'Hono, with the whole path': {
    basePath: '/api/durably',
    mount: (handler) => getRequestListener(new Hono().all('/api/durably/*', ({ req }) => handler(req.raw)).fetch),
  },
  'node:http': { basePath: '/api/durably', mount: (handler) => getRequestListener(handler) },
}

it.each(Object.entries(MOUNTS))('is served by %s', async (_name, { basePath, mount }) => {
  const api = openApi(basePath === undefined ? {} : { basePath })
  api.durably.defineJob({ name: 'ask', input: z.unknown() }, (ctx) => ctx.waitFor('answer', { schema: z.unknown() }))
  const listener = mount(api.handler)
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const client = createDurablyClient({ url: `http://127.0.0.1:${port}/api/durably` })

  const { id } = await client.trigger('ask', { text: 'ü' })
  const events: string[] = []
  const followed = (async () => {
    for await (const { type } of client.subscribe(id)) events.push(type)
  })()
  await api.durably.runUntilIdle()
  await expect.poll(() => events).toContain('run:suspend')
  await client.signal(id, 'answer', 42)
  await api.durably.runUntilIdle()
  await followed
  expect(events.at(-1)).toBe('run:complete')
  expect(await client.getRun(id)).toMatchObject({ payload: { text: 'ü' }, output: 42 })
  expect(await client.getRun('none')).toBeNull()
  server.closeAllConnections()
})
