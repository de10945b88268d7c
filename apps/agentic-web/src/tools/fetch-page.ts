import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { requireAllowed } from './allowed-hosts'
import { guardedRequest, type Resolve } from './guarded-request'
import { readableHtml } from './readable-html'
import { type AnyTool, defineTool } from './tool'

const MOST_BYTES = 1024 * 1024
const MOST_TOLD = 60_000
const MOST_HOPS = 5
const TIMEOUT_MS = 15_000
const READABLE = /^(?:text\/|application\/(?:json|xml|javascript|[\w.-]+\+(?:json|xml))\b)/i

interface FetchOptions {
  readonly timeoutMs?: number
  readonly resolve?: Resolve
}

/** Reads pages of the hosts in `allowed`, and of no other, however it is led there. */
export function createFetchPage(allowed: readonly string[], options: FetchOptions = {}): AnyTool {
  return defineTool({
    name: 'fetch_page',
    description: `Reads a page, or JSON, of one of these hosts: ${allowed.join(', ')}.`,
    input: z.strictObject({ url: z.string().max(2000) }),
    sideEffects: false,
    needsApproval: false,
    execute: async ({ url }, { signal }) => {
      const limit = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS)
      const follow = { allowed, resolve: options.resolve, signal: AbortSignal.any([signal, limit]) }
      try {
        return await fetchPage(url, follow)
      } catch (error) {
        if (limit.aborted && !signal.aborted) throw new Error(`${url} took longer than ${TIMEOUT_MS / 1000} seconds.`)
        throw error
      }
    },
  })
}

interface Follow {
  readonly allowed: readonly string[]
  readonly signal: AbortSignal
  readonly resolve: Resolve | undefined
}

async function fetchPage(address: string, { allowed, signal, resolve }: Follow) {
  let url = requireAllowed(address, allowed)
  const headers = { accept: 'text/*, application/json' }
  for (let hop = 0; hop <= MOST_HOPS; hop++) {
    const response = await guardedRequest(url, { signal, headers, ...(resolve && { resolve }) })
    const location = response.headers.location
    if (!isRedirect(response.statusCode) || location === undefined) return read(url, response)
    response.destroy()
    url = requireAllowed(new URL(location, url).href, allowed)
  }
  throw new Error(`${address} redirects more than ${MOST_HOPS} times.`)
}

const isRedirect = (status = 0) => [301, 302, 303, 307, 308].includes(status)

async function read(url: URL, response: IncomingMessage) {
  const type = response.headers['content-type'] ?? ''
  if (!READABLE.test(type)) {
    response.destroy()
    throw new Error(`${url.href} is ${type === '' ? 'of no known type' : type}, not text.`)
  }
  const { body, isWhole } = await readSome(response)
  const text = /html/i.test(type) ? readableHtml(body) : body
  const isCut = !isWhole || text.length > MOST_TOLD
  return { url: url.href, status: response.statusCode, type, text: text.slice(0, MOST_TOLD), ...(isCut && { isCut }) }
}

/** A page may go on for ever. */
async function readSome(response: IncomingMessage): Promise<{ body: string; isWhole: boolean }> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > MOST_BYTES) break
  }
  response.destroy()
  return { body: Buffer.concat(chunks).subarray(0, MOST_BYTES).toString('utf8'), isWhole: bytes <= MOST_BYTES }
}
