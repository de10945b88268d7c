import { z } from 'zod'
import { type AnyTool, defineTool } from './tool'

const input = z.object({ url: z.url().max(2000) })

const MOST_BYTES = 100_000
const MOST_HOPS = 5

/** Reads pages of the hosts in `allowed` (`example.com`, `localhost:8080`), and of no other, however it is led there. */
export function createFetchPage(allowed: readonly string[]): AnyTool {
  return defineTool({
    name: 'fetch_page',
    description: `Reads a page of one of these hosts: ${allowed.join(', ')}.`,
    input,
    sideEffects: false,
    needsApproval: false,
    async execute({ url }: z.output<typeof input>, { signal }) {
      let target = requireAllowed(url, allowed)
      for (let hop = 0; hop <= MOST_HOPS; hop++) {
        const response = await fetch(target, {
          redirect: 'manual',
          signal,
          headers: { accept: 'text/*, application/json' },
        })
        const location = response.headers.get('location')
        if (response.status < 300 || response.status > 399 || location === null) {
          return { status: response.status, text: await textOf(response) }
        }
        await response.body?.cancel()
        target = requireAllowed(new URL(location, target).href, allowed)
      }
      throw new Error(`It was sent on more than ${MOST_HOPS} times.`)
    },
  })
}

export function requireAllowed(given: string, allowed: readonly string[]): URL {
  const url = new URL(given)
  const isPlain = url.username === '' && url.password === '' && (url.protocol === 'https:' || url.protocol === 'http:')
  // `host` is what the connection goes to, once the address was taken apart: with its port, in lower case, in punycode.
  if (isPlain && allowed.includes(url.host)) return url
  throw new Error(`Pages of ${url.host} may not be read here.`)
}

async function textOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes >= MOST_BYTES) break
  }
  return new TextDecoder().decode(Buffer.concat(pieces).subarray(0, MOST_BYTES))
}
