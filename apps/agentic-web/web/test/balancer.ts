import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/** What stands before the apis in these tests: serves the built page, and asks the apis in turn. */
export interface Balancer {
  readonly url: string
  /** Where the apis are at present. */
  targets: readonly string[]
  close(): Promise<void>
}

export async function startBalancer(pageFolder: string): Promise<Balancer> {
  let next = 0
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '/'
    // A model that knows nobody's key.
    if (path.startsWith('/model/')) return void outgoing.writeHead(401).end('{"error":{"message":"No such key"}}')
    if (!/^\/(?:api|auth)\//.test(path)) return void sendPage(pageFolder, path, outgoing)
    const target = balancer.targets[next++ % balancer.targets.length]
    if (target === undefined) return void outgoing.writeHead(502).end()
    passOn(incoming, outgoing, target)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const balancer: Balancer = {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    targets: [],
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return balancer
}

function passOn(incoming: IncomingMessage, outgoing: ServerResponse, target: string): void {
  const { method, url = '/' } = incoming
  // Of the connection to the browser, not of ours.
  const { connection: _, ...headers } = incoming.headers
  const passed = request(new URL(url, target), { method, headers, agent: false }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    outgoing.flushHeaders()
    answer.on('error', () => outgoing.destroy())
    answer.pipe(outgoing)
  })
  passed.on('error', () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()))
  outgoing.on('close', () => passed.destroy())
  incoming.pipe(passed)
}

/** An address of the page that is no file is one that the page knows. */
async function sendPage(folder: string, path: string, outgoing: ServerResponse): Promise<void> {
  const { pathname } = new URL(path, 'http://page')
  const file = extname(pathname) === '' ? '/index.html' : normalize(pathname)
  const content = await readFile(join(folder, file)).catch(() => null)
  if (content === null) outgoing.writeHead(404).end()
  else outgoing.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'text/plain' }).end(content)
}
