/** Serves runs in Bun or Deno, and says at which port. */
import { openHandler } from './open-handler.ts'

type Fetch = (request: Request) => Promise<Response>

interface Runtimes {
  readonly Bun?: { serve(options: Listening & { readonly fetch: Fetch }): { readonly port: number } }
  readonly Deno?: {
    serve(options: Listening & { onListen(): void }, fetch: Fetch): { readonly addr: { readonly port: number } }
  }
}

interface Listening {
  readonly hostname: string
  readonly port: number
}

const ANY_PORT: Listening = { hostname: '127.0.0.1', port: 0 }

function serve(fetch: Fetch): number {
  const { Bun, Deno } = globalThis as Runtimes
  if (Bun !== undefined) return Bun.serve({ ...ANY_PORT, fetch }).port
  if (Deno !== undefined) return Deno.serve({ ...ANY_PORT, onListen() {} }, fetch).addr.port
  throw new Error('Nothing here serves HTTP by itself.')
}

console.log(JSON.stringify({ port: serve(await openHandler()) }))
