import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join, normalize } from 'node:path'
import type { Durably } from '@coji/durably-core'
import { build } from 'vite'
import { listen } from '../../dashboard/test/node-server'
import { createDurablyHandler } from '../../server/src/index'
import { described } from '../../server/test/described'
import { createInstance, openGates } from './page/jobs'

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' }
const API = '/api/durably'

export interface Site {
  readonly url: string
  /** From now on the API is that of another instance, with no runs. */
  forgetRuns(): Promise<void>
  close(): Promise<void>
}

/** The page, built from the sources; at `/hydrated` with what a server has rendered in it. Each answer of the API is checked. */
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
  let served = serveInstance()
  const server = await listen(async (request) => {
    const { pathname } = new URL(request.url)
    return pathname.startsWith(`${API}/`) ? served.api(request) : fileOf(pathname)
  })
  function fileOf(pathname: string): Response {
    const isPage = extname(pathname) === ''
    const file = readFileSync(join(outDir, isPage ? 'index.html' : normalize(pathname)), 'utf8')
    const isHydrated = pathname === '/hydrated'
    const text = isHydrated ? file.replace('<div id="root"></div>', `<div id="root">${rendered}</div>`) : file
    return new Response(text, { headers: { 'content-type': TYPES[extname(pathname)] ?? 'text/html' } })
  }
  return {
    url: server.url,
    async forgetRuns() {
      openGates()
      await served.durably.close()
      served = serveInstance()
    },
    async close() {
      await server.close()
      await served.durably.close()
      rmSync(outDir, { recursive: true, force: true })
    },
  }
}

function serveInstance() {
  const durably: Durably = createInstance()
  return { durably, api: described(createDurablyHandler(durably, { allowAnonymous: true, basePath: API }), API) }
}
