/** Serves a run over HTTP in whatever runs this, follows it to its end, and says what came of it. */
import { createDurably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { createDurablyHandler } from '@coji/durably-server'
import { createDurablyClient } from '@coji/durably-server/client'
import { z } from 'zod'

type Fetch = (request: Request) => Promise<Response>

interface Runtimes {
  readonly Bun?: { serve(options: { readonly port: number; readonly fetch: Fetch }): { readonly port: number } }
  readonly Deno?: {
    serve(
      options: { readonly port: number; onListen(): void },
      fetch: Fetch,
    ): { readonly addr: { readonly port: number } }
  }
}

const durably = createDurably({ storage: createMemoryStorage(), logger: null })
durably.use(withLogPersistence())
durably.defineJob({ name: 'ask', input: z.unknown() }, (ctx) => ctx.waitFor('answer', { schema: z.unknown() }))
const handler = createDurablyHandler(durably, { allowAnonymous: true, basePath: '/api' })

function serve(): number {
  const { Bun, Deno } = globalThis as Runtimes
  if (Bun !== undefined) return Bun.serve({ port: 0, fetch: handler }).port
  if (Deno !== undefined) return Deno.serve({ port: 0, onListen() {} }, handler).addr.port
  throw new Error('Nothing here serves HTTP by itself.')
}

const client = createDurablyClient({ url: `http://127.0.0.1:${serve()}/api` })
const { id } = await client.trigger('ask', { text: 'ü' })
let answered: Promise<unknown> | null = null
await durably.runUntilIdle()
for await (const { type } of client.subscribe(id)) {
  if (type === 'run:suspend') answered = client.signal(id, 'answer', 42).then(() => durably.runUntilIdle())
}
await answered
const run = await client.getRun(id)
console.log(JSON.stringify({ status: run?.status, payload: run?.payload, output: run?.output }))
globalThis.process.exit(0)
