import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join, normalize } from 'node:path'
import { build } from 'vite'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
}

export const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

/** The page, built from the sources as an application would be. */
export async function buildPage(): Promise<string> {
  const outDir = mkdtempSync(join(tmpdir(), 'durably-environment-'))
  await build({
    root: join(import.meta.dirname, 'page'),
    configFile: false,
    logLevel: 'error',
    resolve: { conditions: ['@coji/durably-source', 'module', 'browser', 'production'] },
    worker: { format: 'es' },
    build: { outDir, emptyOutDir: true, target: 'es2022', minify: false },
  })
  return outDir
}

export interface PageServer {
  readonly port: number
  close(): Promise<void>
}

export interface HostParams {
  readonly folder: string
  readonly headers: Readonly<Record<string, string>>
  /** What was forgotten when the page was put there. */
  readonly lacking?: RegExp
}

/** A static host that sends these headers and nothing more. */
export async function servePage({ folder, headers, lacking }: HostParams): Promise<PageServer> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const file = join(folder, normalize(pathname === '/' ? '/index.html' : pathname))
    if (!existsSync(file) || lacking?.test(pathname)) return response.writeHead(404).end()
    const type = TYPES[extname(file)] ?? 'application/octet-stream'
    return response.writeHead(200, { ...headers, 'Content-Type': type }).end(readFileSync(file))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { port, close }
}

export function removePage(folder: string): void {
  if (folder !== '') rmSync(folder, { recursive: true, force: true })
}
