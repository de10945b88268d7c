import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'

export interface Listening {
  readonly url: string
  close(): Promise<void>
}

/** Serves a handler of `Request` and `Response` by `node:http`. */
export async function listen(handler: (request: Request) => Promise<Response>, port = 0): Promise<Listening> {
  const server = createServer((incoming, outgoing) => {
    const aborting = new AbortController()
    outgoing.on('close', () => aborting.abort())
    handler(toRequest(incoming, aborting.signal)).then(
      (response) => send(response, outgoing),
      (error: unknown) => outgoing.writeHead(500).end(String(error)),
    )
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headers } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const init = { method, headers: headers as Record<string, string>, signal }
  const body = hasBody ? { body: Readable.toWeb(incoming) as ReadableStream, duplex: 'half' } : {}
  return new Request(`http://${headers.host}${url}`, { ...init, ...body } as RequestInit)
}

function send(response: Response, outgoing: ServerResponse): void {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  outgoing.flushHeaders()
  if (response.body === null) {
    outgoing.end()
    return
  }
  const body = Readable.fromWeb(response.body as NodeStream)
  body.on('error', () => outgoing.destroy())
  outgoing.on('close', () => body.destroy())
  body.pipe(outgoing)
}
