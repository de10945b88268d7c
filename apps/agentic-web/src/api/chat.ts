import { Hono } from 'hono'
import { chatBodySchema } from '../contract'
import { readBody } from './body'
import { followRun, NEW_TITLE, startRun } from './runs'
import type { AppEnv, Services } from './services'
import { createSession, requireSession } from './sessions'
import { RequestError } from './problem'

const SESSION_ID = /^[\w-]{1,64}$/

/** The contract before there were runs: one request, and its answer is what the agent says. A wrapper, nothing more. */
export function chatRoutes(services: Services): Hono<AppEnv> {
  return new Hono<AppEnv>().post('/:sessionId', async (context) => {
    const sessionId = context.req.param('sessionId')
    const { message } = await readBody(context, chatBodySchema)
    await requireSession(services, context, sessionId).catch(async (error) => {
      if (!(error instanceof RequestError) || !SESSION_ID.test(sessionId)) throw error
      await createSession(services, { userId: context.var.user.id, title: NEW_TITLE, sessionId })
      // Where it is somebody else's, it is as if there were none, and none can be made.
      await requireSession(services, context, sessionId)
    })
    const run_id = await startRun(services, context, { session_id: sessionId, message })
    const events = await followRun(services, context, run_id)
    const { body, headers } = events
    if (!events.ok || body === null) return events
    const first = `event: run\ndata: ${JSON.stringify({ run_id, status: 'queued' })}\n\n`
    return new Response(prefixed(first, body), { headers })
  })
}

function prefixed(text: string, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const first = new TextEncoder().encode(text)
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({ start: (controller) => controller.enqueue(first) }),
  )
}
