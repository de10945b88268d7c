import { z } from 'zod'
import { requireAllowed } from './allowed-hosts'
import { guardedRequest } from './guarded-request'
import { type AnyTool, defineTool } from './tool'

const input = z.object({ url: z.url().max(2000), body: z.json() })

/** Sends something to one of the hosts in `allowed`: what is sent twice arrives twice, unless the host knows the key. */
export function createPostJson(allowed: readonly string[]): AnyTool {
  return defineTool({
    name: 'post_json',
    description: `Sends JSON to an address of one of these hosts: ${allowed.join(', ')}. The user is asked before.`,
    input,
    sideEffects: true,
    needsApproval: true,
    async execute({ url, body }: z.output<typeof input>, { signal, idempotencyKey }) {
      const response = await guardedRequest(requireAllowed(url, allowed), {
        method: 'POST',
        signal,
        headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
        body: JSON.stringify(body),
      })
      response.destroy()
      return { status: response.statusCode }
    },
  })
}
