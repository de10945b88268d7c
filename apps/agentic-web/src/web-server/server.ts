import { createServer, type Server } from 'node:http'
import { createProxy } from './proxy'
import { createSite } from './site'

export interface WebServerOptions {
  /** Where the built page is. */
  readonly folder: string
  readonly apiUrls: readonly string[]
}

/** The page, and in front of the api a proxy that asks its instances in turn: what a load balancer does elsewhere. */
export function createWebServer({ folder, apiUrls }: WebServerOptions): Server {
  const site = createSite(folder)
  const proxy = createProxy(apiUrls)
  return createServer((request, response) => {
    const pathname = pathOf(request.url)
    if (pathname === null) return void response.writeHead(400).end()
    if (pathname === '/readyz' || pathname === '/healthz') return void response.writeHead(200).end('{"ok":true}')
    const isApi = /^\/(api|auth)(\/|$)/.test(pathname)
    const answered = isApi ? proxy(request, response) : site(pathname, response)
    answered.catch(() => response.destroy())
  })
}

/** `null` for whole addresses and for `//host`, which name another server. */
function pathOf(target = '/'): string | null {
  if (!/^\/(?![/\\])/.test(target)) return null
  return new URL(`http://any${target}`).pathname
}
