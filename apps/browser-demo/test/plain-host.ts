import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import type { Site } from './vite-process'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.wasm': 'application/wasm',
}

/** Serves a folder as most hosts do: without the headers that isolate a page. */
export async function servePlainly(folder: string): Promise<Site> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const path = join(folder, normalize(pathname.endsWith('/') ? `${pathname}index.html` : pathname))
    readFile(path).then(
      (bytes) => response.setHeader('Content-Type', TYPES[extname(path)] ?? 'application/octet-stream').end(bytes),
      () => response.writeHead(404).end(),
    )
  })
  await once(server.listen(0, 'localhost'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The host has no port.')
  return {
    url: `http://localhost:${address.port}/`,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
