import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { expect, it, onTestFinished } from 'vitest'
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
  await seeRunThroughAt(mount(openHandler(basePath)))
})

it.each([
  ['runs', /"version":\d+/g, 'version'],
  ['events of a stream', /"seq":\d+/g, 'seq'],
  ['refusals', /"title":"Not Found"/g, 'title'],
])('is not seen through when %s are not as the document says', async (_name, told, name) => {
  const handler = falsified(openHandler(), (text) => text.replaceAll(told, `"${name}":false`))
  await expect(seeRunThroughAt(getRequestListener(new Hono().mount('/api/durably', handler).fetch))).rejects.toThrow(
    `/${name} must be`,
  )
})

function falsified(handler: DurablyHandler, falsify: (text: string) => string): DurablyHandler {
  return async (request) => {
    const response = await handler(request)
    const falsifying = new TransformStream<string, string>({
      transform: (text, controller) => controller.enqueue(falsify(text)),
    })
    const text = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(falsifying)
    return new Response(text?.pipeThrough(new TextEncoderStream()) ?? null, response)
  }
}

function openHandler(basePath = ''): DurablyHandler {
  const { durably, handler } = openApi({ basePath })
  durably.defineJob({ name: 'ask', input: z.unknown() }, (ctx) => ctx.waitFor('answer', { schema: z.unknown() }))
  durably.start()
  return handler
}

async function seeRunThroughAt(listener: RequestListener): Promise<void> {
  const server = createServer(listener)
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
}
