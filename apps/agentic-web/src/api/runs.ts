import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { Hono } from 'hono'
import { AGENT_JOB, type AgentInput, SESSION_LABEL, sessionKey } from '../agent/declaration'
import { keepMessage } from '../agent/conversation'
import { runBodySchema } from '../contract'
import { viewRun } from '../run-view'
import { readBody } from './body'
import { notFound, RequestError } from './problem'
import type { AppContext, AppEnv, Services } from './services'

export const RUNS_PATH = '/api/durably'

export function runRoutes(services: Services): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .post('/', async (context) => {
      const { session_id, message, idempotency_key } = await readBody(context, runBodySchema)
      const run_id = await startRun(services, context, { session_id, message, idempotency_key })
      return context.json({ run_id, status: 'queued' }, 202)
    })
    .get('/:id', async (context) => context.json(viewRun(await requireRun(services, context))))
    .get('/:id/events', (context) => followRun(services, context, context.req.param('id')))
    .post('/:id/cancel', async (context) => {
      const { id } = await requireRun(services, context)
      return context.json(viewRun(await mine(services, context).cancel(id)))
    })
    .post('/:id/retry', async (context) => {
      const { id } = await requireRun(services, context)
      return context.json(viewRun(await mine(services, context).retry(id)))
    })
}

export function mine({ durably }: Services, { var: { user } }: AppContext) {
  return durably.scoped({ tenant: user.id })
}

/** The run of the address, if it is of who asks. */
export async function requireRun(services: Services, context: AppContext, runId = context.req.param('id')) {
  const run = await mine(services, context).getRun(runId ?? '')
  if (run === null || run.jobName !== AGENT_JOB) throw notFound('run')
  return run
}

interface NewRun {
  readonly session_id: string
  readonly message: string
  readonly idempotency_key?: string | undefined
}

const LONGEST_TITLE = 60

/** Of a session that nobody has given one: it takes its first message. */
export const NEW_TITLE = 'New chat'

/** The run and the message are there together or not at all. */
export async function startRun(services: Services, context: AppContext, wanted: NewRun): Promise<string> {
  const { durably, agent, limits } = services
  const { id: user_id } = context.var.user
  const { session_id, message, idempotency_key: key } = wanted
  await limits.run(user_id)
  return durably.transaction(async (trx) => {
    const session = await trx
      .updateTable('sessions')
      .set({ updated_at: sql`now()` })
      .where('session_id', '=', session_id)
      .where('user_id', '=', user_id)
      .returning(['last_run_id', 'title', sql<string>`nextval('message_places')`.as('place')])
      .executeTakeFirst()
    if (session === undefined) throw notFound('session')
    const input = { session_id, user_id, message, place: session.place }
    const run = await agent.trigger(input, {
      tenant: user_id,
      concurrencyKey: sessionKey(session_id),
      holdKeyWhileWaiting: true,
      labels: { [SESSION_LABEL]: session_id },
      idempotencyKey: `${session_id}:${key ?? randomUUID()}`,
      transaction: trx,
    })
    if (run.deduplicated) return requireSame(run, message)
    await keepMessage(trx, { of: input, runId: run.id, position: 0, content: { role: 'user', text: message } })
    const isUntitled = session.last_run_id === null && session.title === NEW_TITLE
    const title = isUntitled ? { title: message.slice(0, LONGEST_TITLE) } : {}
    await trx
      .updateTable('sessions')
      .set({ last_run_id: run.id, ...title })
      .where('session_id', '=', session_id)
      .where('user_id', '=', user_id)
      .execute()
    return run.id
  })
}

function requireSame({ id, payload }: { readonly id: string; readonly payload: unknown }, message: string): string {
  if ((payload as AgentInput).message === message) return id
  throw new RequestError('CONFLICT', 'This idempotency_key was used for another message.')
}

/** The streams of the server package, at the address of this application. */
export function followRun({ runs, config }: Services, context: AppContext, runId: string): Promise<Response> {
  const url = new URL(`${RUNS_PATH}/runs/${encodeURIComponent(runId)}/events`, config.publicUrl)
  const after = context.req.query('after')
  if (after !== undefined) url.searchParams.set('after', after)
  const { headers, signal } = context.req.raw
  return runs(new Request(url, { headers, signal }))
}
