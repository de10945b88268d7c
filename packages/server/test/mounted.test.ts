import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { seeRunThrough } from '../../../test/mounted-handler'
import type { DurablyHandler } from '../src'
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
  api.durably.start()
  const server = createServer(mount(api.handler))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  await seeRunThrough(`http://127.0.0.1:${port}/api/durably`, {
    ...{ jobName: 'ask', payload: { text: 'ü' }, signalName: 'answer', value: 42, output: 42 },
  })
})
