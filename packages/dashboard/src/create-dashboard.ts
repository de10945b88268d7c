import type { Assets } from './assets'

/** Answers requests; mounts wherever a `Request` and a `Response` are known. */
export type DashboardHandler = (request: Request) => Promise<Response>

/** How the dashboard is served. */
export interface DashboardOptions {
  /**
   * Where its data come from: a handler of `createDurablyHandler`, which is then served below the dashboard, at `api`, and
   * needs no `basePath` of its own; or the address of one that is mounted elsewhere. Who may see and do what is said there.
   */
  readonly api: ((request: Request) => Promise<Response>) | string
  /** Where the dashboard is mounted: `/admin/durably`. Default: at the root. */
  readonly basePath?: string | undefined
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'self'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
} as const

/** Named after what is in them. */
const FOR_EVER = 'public, max-age=31536000, immutable'

/** Serves these files as a dashboard. */
export function serveDashboard(assets: Assets, options: DashboardOptions): DashboardHandler {
  refuseBadOptions(options)
  const { api, basePath = '' } = options
  const base = normalised(basePath)
  const page = pageOf(assets, { base, api: typeof api === 'string' ? api : `${base}/api` })
  return async (request) => {
    const path = pathBelow(base, new URL(request.url).pathname)
    if (path === null) return notFound()
    if (typeof api !== 'string' && (path === 'api' || path.startsWith('api/'))) {
      return api(below(request, path.slice('api'.length)))
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return new Response('Only GET is possible here.', { status: 405, headers: { ...HEADERS, allow: 'GET, HEAD' } })
    }
    return withoutBody(request, fileAt(assets, path) ?? (isAsset(path) ? notFound() : html(page)))
  }
}

const OPTIONS: Readonly<Record<keyof DashboardOptions, true>> = { api: true, basePath: true }

function refuseBadOptions(options: DashboardOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`createDashboard() takes its options as an object, not ${String(options)}.`)
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(OPTIONS, name)) continue
    throw new TypeError(`createDashboard() knows no option "${name}". There are ${Object.keys(OPTIONS).join(', ')}.`)
  }
  const { api, basePath } = options
  if (typeof api !== 'function' && (typeof api !== 'string' || api === '')) {
    throw new TypeError('createDashboard() needs api: a handler of createDurablyHandler(), or the address of one.')
  }
  if (basePath !== undefined && typeof basePath !== 'string') {
    throw new TypeError(`basePath must be a text such as "/admin/durably", not ${String(basePath)}.`)
  }
}

function normalised(basePath: string): string {
  const trimmed = basePath.replace(/^\/+|\/+$/g, '')
  return trimmed === '' ? '' : `/${trimmed}`
}

/** `null`: this address is none of ours. */
function pathBelow(base: string, pathname: string): string | null {
  if (pathname === base) return ''
  return pathname.startsWith(`${base}/`) ? pathname.slice(base.length + 1) : null
}

/** As the handler of the data would have got it at the root. */
function below(request: Request, path: string): Request {
  const url = new URL(request.url)
  url.pathname = path === '' ? '/' : path
  return new Request(url, request)
}

function isAsset(path: string): boolean {
  return path.startsWith('assets/')
}

function fileAt(assets: Assets, path: string): Response | null {
  const asset = isAsset(path) && Object.hasOwn(assets, path) ? assets[path] : undefined
  if (asset === undefined) return null
  return new Response(asset.text, { headers: { ...HEADERS, 'content-type': asset.type, 'cache-control': FOR_EVER } })
}

/** Its files and its data are found from any of its addresses. */
function pageOf(assets: Assets, { base, api }: { readonly base: string; readonly api: string }): string {
  const index = assets['index.html']?.text ?? ''
  const head = `<base href="${escaped(`${base}/`)}" />\n    <meta name="durably-api" content="${escaped(api)}" />`
  return index.replace('<head>', () => `<head>\n    ${head}`)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}

function html(page: string): Response {
  return new Response(page, {
    headers: { ...HEADERS, 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' },
  })
}

function notFound(): Response {
  return new Response('There is nothing at this address.', { status: 404, headers: HEADERS })
}

function withoutBody({ method }: Request, response: Response): Response {
  return method === 'HEAD' ? new Response(null, response) : response
}
