import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join, normalize } from 'node:path'
import { build } from 'vite'

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' }

export interface Site {
  readonly url: string
  close(): Promise<void>
}

/** The page, built from the sources; at `/hydrated` with what a server has rendered in it. */
export async function serveSite(rendered: string): Promise<Site> {
  const outDir = mkdtempSync(join(tmpdir(), 'durably-react-'))
  await build({
    root: join(import.meta.dirname, 'page'),
    configFile: false,
    logLevel: 'error',
    // As while developing: StrictMode mounts everything twice.
    mode: 'development',
    resolve: { conditions: ['@coji/durably-source', 'module', 'browser', 'development'] },
    build: { outDir, emptyOutDir: true, target: 'es2022', minify: false },
  })
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const isPage = extname(pathname) === ''
    const file = readFileSync(join(outDir, isPage ? 'index.html' : normalize(pathname)), 'utf8')
    const isHydrated = pathname === '/hydrated'
    const text = isHydrated ? file.replace('<div id="root"></div>', `<div id="root">${rendered}</div>`) : file
    response.writeHead(200, { 'Content-Type': TYPES[extname(pathname)] ?? 'text/html' }).end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      rmSync(outDir, { recursive: true, force: true })
    },
  }
}
