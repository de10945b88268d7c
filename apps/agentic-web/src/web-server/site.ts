import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { extname, join, normalize, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.map': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** What a model says may hold pictures and links of other sites, by which it could tell them what it has read. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
  ].join('; '),
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
} as const

const NOT_BUILT = '<!doctype html><title>Agentic web</title><p>The api is here. The page has not been built.</p>'

/** Serves a folder; addresses without a file of theirs are the page, which knows what they mean. */
export function createSite(folder: string) {
  return async (pathname: string, response: ServerResponse): Promise<void> => {
    const path = await fileAt(folder, pathname)
    if (path === null) {
      response.writeHead(200, { ...HEADERS, 'content-type': TYPES['.html'], 'cache-control': 'no-cache' })
      return void response.end(NOT_BUILT)
    }
    const isHashed = pathname.startsWith('/assets/')
    response.writeHead(200, {
      ...HEADERS,
      'content-type': TYPES[extname(path)] ?? 'application/octet-stream',
      'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    })
    // Who goes away in the middle of it is nobody's trouble.
    await pipeline(createReadStream(path), response).catch(() => response.destroy())
  }
}

async function fileAt(folder: string, pathname: string): Promise<string | null> {
  for (const name of [decode(pathname), 'index.html']) {
    const path = normalize(join(folder, name))
    if (!path.startsWith(`${normalize(folder)}${sep}`)) continue
    if ((await stat(path).catch(() => null))?.isFile()) return path
  }
  return null
}

function decode(pathname: string): string {
  try {
    const name = decodeURIComponent(pathname)
    return name.includes('\0') ? '/' : name
  } catch {
    return '/'
  }
}
