import { randomUUID } from 'node:crypto'
import type { Run } from '@coji/durably'
import { Hono } from 'hono'
import {
  type FileList,
  type Message,
  type Session,
  type SessionDetail,
  type SessionList,
  sessionBodySchema,
  sessionListQuerySchema,
  sessionPatchSchema,
} from '../contract'
import type { Tables } from '../database/tables'
import { stateOf, viewRun } from '../run-view'
import { removeSession, runsOf } from '../sessions/remove-session'
import { readBody, readQuery } from './body'
import { invalid, notFound, RequestError } from './problem'
import { NEW_TITLE } from './runs'
import type { AppContext, AppEnv, Services } from './services'
import { z } from 'zod'
import { type Selectable, sql } from 'kysely'

export function sessionRoutes(services: Services): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get('/', async (context) => context.json(await listSessions(services, context)))
    .post('/', async (context) => {
      const { title = NEW_TITLE } = await readBody(context, sessionBodySchema)
      return context.json(await createSession(services, { userId: context.var.user.id, title }), 201)
    })
    .get('/:id', async (context) => context.json(await showSession(services, context)))
    .patch('/:id', async (context) => context.json(await renameSession(services, context)))
    .delete('/:id', async (context) => {
      const { session_id: sessionId, user_id: userId } = await requireSession(services, context)
      await removeSession(services, { userId, sessionId })
      return context.body(null, 204)
    })
    .get('/:id/files', async (context) => context.json(await listFiles(services, context)))
    .get('/:id/files/:path{.+}', (context) => downloadFile(services, context))
}

interface NewSession {
  readonly userId: string
  readonly title: string
  readonly sessionId?: string
}

/** `null` when there is one of that id, whosever it is. */
export async function createSession({ db }: Services, { userId, title, sessionId = randomUUID() }: NewSession) {
  const row = await db
    .insertInto('sessions')
    .values({ session_id: sessionId, user_id: userId, title })
    .onConflict((conflict) => conflict.column('session_id').doNothing())
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? null : toSession(row, null)
}

type SessionRow = Pick<Selectable<Tables['sessions']>, 'session_id' | 'title' | 'created_at' | 'updated_at'>

function toSession(row: SessionRow, run: Parameters<typeof stateOf>[0]): Session {
  return {
    session_id: row.session_id,
    title: row.title,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    state: stateOf(run),
  }
}

/** Where a page of sessions goes on: behind this one. */
const cursorSchema = z.tuple([z.iso.datetime(), z.string()])

async function listSessions({ db }: Services, context: AppContext): Promise<SessionList> {
  const { cursor, limit } = readQuery(context, sessionListQuerySchema)
  const { id: userId } = context.var.user
  let query = db
    .selectFrom('sessions')
    .leftJoin('durably_runs as run', (join) =>
      join.onRef('run.id', '=', 'sessions.last_run_id').onRef('run.tenant', '=', 'sessions.user_id'),
    )
    .where('user_id', '=', userId)
    .orderBy('sessions.updated_at', 'desc')
    .orderBy('session_id', 'desc')
    .limit(limit + 1)
    .select(['session_id', 'title', 'sessions.created_at', 'sessions.updated_at'])
    .select(['run.status', sql<string | null>`run.started_at`.as('startedAt')])
    .select(sql<string | null>`run.waiting_for::text`.as('waitingFor'))
  if (cursor !== undefined) {
    const [updatedAt, sessionId] = readCursor(cursor)
    const after = new Date(updatedAt)
    query = query.where(({ eb, and, or }) =>
      or([
        eb('sessions.updated_at', '<', after),
        and([eb('sessions.updated_at', '=', after), eb('session_id', '<', sessionId)]),
      ]),
    )
  }
  const rows = await query.execute()
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = rows.length <= limit || last === undefined ? null : [last.updated_at.toISOString(), last.session_id]
  return {
    sessions: shown.map((row) => toSession(row, lastRunOf(row))),
    next: next === null ? null : Buffer.from(JSON.stringify(next)).toString('base64url'),
  }
}

interface LastRun {
  readonly status: Run['status'] | null
  readonly startedAt: string | null
  readonly waitingFor: string | null
}

function lastRunOf({ status, startedAt, waitingFor }: LastRun): Parameters<typeof stateOf>[0] {
  return status === null ? null : { status, startedAt, waitingFor: waitingFor === null ? null : JSON.parse(waitingFor) }
}

function readCursor(cursor: string): readonly [string, string] {
  try {
    return cursorSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
  } catch {
    throw new RequestError('INVALID_REQUEST', 'That cursor is none of a page of sessions.')
  }
}

/** The session of the address, if it is of who asks. */
export async function requireSession({ db }: Services, context: AppContext, sessionId = context.req.param('id')) {
  const row = await db
    .selectFrom('sessions')
    .where('session_id', '=', sessionId ?? '')
    .where('user_id', '=', context.var.user.id)
    .selectAll()
    .executeTakeFirst()
  if (row === undefined) throw notFound('session')
  return row
}

async function showSession(services: Services, context: AppContext): Promise<SessionDetail> {
  const row = await requireSession(services, context)
  const { id: userId } = context.var.user
  const [runs, messages] = await Promise.all([
    runsOf(services, { userId, sessionId: row.session_id }),
    services.db
      .selectFrom('messages')
      .where('session_id', '=', row.session_id)
      .where('user_id', '=', userId)
      .orderBy('place')
      .orderBy('position')
      .select(['message_id', 'run_id', 'created_at', 'content'])
      .execute(),
  ])
  const last = runs.find(({ id }) => id === row.last_run_id) ?? null
  return {
    ...toSession(row, last),
    messages: messages.map((each): Message => ({ ...each, created_at: each.created_at.toISOString() })),
    runs: runs.map(viewRun).reverse(),
  }
}

async function renameSession(services: Services, context: AppContext): Promise<Session> {
  const { title } = await readBody(context, sessionPatchSchema)
  const row = await requireSession(services, context)
  const { id: userId } = context.var.user
  await services.db
    .updateTable('sessions')
    .set({ title })
    .where('session_id', '=', row.session_id)
    .where('user_id', '=', userId)
    .execute()
  const run = row.last_run_id === null ? null : services.durably.scoped({ tenant: userId }).getRun(row.last_run_id)
  return toSession({ ...row, title }, await run)
}

async function listFiles(services: Services, context: AppContext): Promise<FileList> {
  const { session_id } = await requireSession(services, context)
  const files = await services.db
    .selectFrom('session_files')
    .where('session_id', '=', session_id)
    .where('user_id', '=', context.var.user.id)
    .orderBy('path')
    .select(['path', 'size', 'updated_at'])
    .execute()
  return { files: files.map((file) => ({ ...file, updated_at: file.updated_at.toISOString() })) }
}

/** Never shown by the browser as a page of this site: models and tools have written it. */
async function downloadFile(services: Services, context: AppContext): Promise<Response> {
  const { session_id } = await requireSession(services, context)
  const { success, data: path, error } = z.string().max(200).safeParse(context.req.param('path'))
  if (!success) throw invalid('path', error)
  const file = await services.db
    .selectFrom('session_files')
    .where('session_id', '=', session_id)
    .where('user_id', '=', context.var.user.id)
    .where('path', '=', path)
    .select('content')
    .executeTakeFirst()
  if (file === undefined) throw notFound('file')
  const name = encodeURIComponent(path.split('/').at(-1) ?? 'file')
  return new Response(new Uint8Array(file.content), {
    headers: {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename*=UTF-8''${name}`,
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    },
  })
}
