import type { z } from 'zod'
import type { Access } from './access'
import { readPage } from './list'
import { HttpProblem } from './problem'
import type { Call } from './route'
import type { Server } from './server'
import type {
  MessageCounts,
  messageListQuerySchema,
  scheduleBodySchema,
  scheduleListQuerySchema,
  schedulePauseBodySchema,
  ServedMessage,
  ServedSchedule,
  tenantQuerySchema,
} from './wire-cluster'

/** Whose schedules or messages. */
export interface ServedScope {
  readonly tenant?: string | undefined
}

/** What the server needs of `createScheduler()`. */
export interface ServedSchedules {
  list(
    filter: ServedScope & {
      readonly jobName?: string | undefined
      readonly limit?: number | undefined
      readonly after?: { readonly tenant: string; readonly name: string } | undefined
    },
  ): Promise<readonly ServedSchedule[]>
  pause(name: string, options: ServedScope & { readonly because?: string | undefined }): Promise<ServedSchedule>
  resume(name: string, scope: ServedScope): Promise<ServedSchedule>
  runNow(name: string, scope: ServedScope): Promise<{ readonly id: string }>
}

/** What the server needs of `createInbox()`. */
export interface ServedInbox {
  list(
    filter: ServedScope & {
      readonly type?: string | readonly string[] | undefined
      readonly unwanted?: boolean | undefined
      readonly from?: string | undefined
      readonly before?: string | undefined
      readonly limit?: number | undefined
      readonly after?: { readonly id: string; readonly createdAt: string } | undefined
    },
  ): Promise<readonly ServedMessage[]>
  counts(scope: { readonly tenant?: string }): Promise<MessageCounts>
}

/** `GET /schedules` */
export async function listSchedules({ access, server, query }: Call<z.output<typeof scheduleListQuerySchema>>) {
  const schedules = schedulesOf(server)
  const { tenant, jobName, limit, cursor } = query
  const place = cursor === undefined ? undefined : placeIn(cursor)
  const after = place === undefined ? undefined : { tenant: place[0], name: place[1] }
  const { items, next } = await readPage(server, limit, {
    read: async (size) =>
      isForeign(access, tenant) ? [] : schedules.list({ ...scopeOf(access, tenant), jobName, limit: size, after }),
    placeOf: (schedule) => placeOf(schedule.tenant, schedule.name),
  })
  return { schedules: items.map((each) => server.present.schedule(each)), next }
}

/** `POST /schedules/pause` */
export async function pauseSchedule({ access, server, body }: Call<unknown, z.output<typeof schedulePauseBodySchema>>) {
  const { name, tenant, because } = body
  return server.present.schedule(await schedulesOf(server).pause(name, { ...ownScope(access, tenant), because }))
}

/** `POST /schedules/resume` */
export async function resumeSchedule({ access, server, body }: Call<unknown, z.output<typeof scheduleBodySchema>>) {
  return server.present.schedule(await schedulesOf(server).resume(body.name, ownScope(access, body.tenant)))
}

/** `POST /schedules/run` */
export async function runSchedule({ access, server, body }: Call<unknown, z.output<typeof scheduleBodySchema>>) {
  const { id } = await schedulesOf(server).runNow(body.name, ownScope(access, body.tenant))
  return { id }
}

/** `GET /inbox` */
export async function listMessages({ access, server, query }: Call<z.output<typeof messageListQuerySchema>>) {
  const inbox = inboxOf(server)
  const { tenant, limit, cursor, ...filter } = query
  const place = cursor === undefined ? undefined : placeIn(cursor)
  const after = place === undefined ? undefined : { createdAt: place[0], id: place[1] }
  const { items, next } = await readPage(server, limit, {
    read: async (size) =>
      isForeign(access, tenant) ? [] : inbox.list({ ...filter, ...scopeOf(access, tenant), limit: size, after }),
    placeOf: (message) => placeOf(message.createdAt, message.id),
  })
  return { messages: items.map((each) => server.present.message(each)), next }
}

/** `GET /inbox/stats` */
export async function countMessages({ access, server, query }: Call<z.output<typeof tenantQuerySchema>>) {
  return inboxOf(server).counts(ownScope(access, query.tenant ?? access.tenant ?? undefined))
}

function schedulesOf({ settings: { schedules } }: Server): ServedSchedules {
  if (schedules !== null) return schedules
  throw new HttpProblem('NOT_SERVED', 'Schedules are not served here: createDurablyHandler() was given none.')
}

function inboxOf({ settings: { inbox } }: Server): ServedInbox {
  if (inbox !== null) return inbox
  throw new HttpProblem('NOT_SERVED', 'The inbox is not served here: createDurablyHandler() was given none.')
}

function isForeign(access: Access, tenant: string | undefined): boolean {
  return access.tenant !== null && tenant !== undefined && tenant !== access.tenant
}

function scopeOf(access: Access, tenant: string | undefined): { readonly tenant?: string } {
  const own = access.tenant ?? tenant
  return own === undefined ? {} : { tenant: own }
}

/** Whose name it is. What belongs to others is not there. */
function ownScope(access: Access, tenant: string | undefined): { readonly tenant?: string } {
  if (!isForeign(access, tenant)) return scopeOf(access, tenant)
  throw new HttpProblem('NOT_FOUND', 'There is nothing of that name.')
}

/** Which no name has that is encoded. */
const SEPARATOR = '/'

function placeOf(first: string, second: string): string {
  return [first, second].map(encodeURIComponent).join(SEPARATOR)
}

function placeIn(cursor: string): readonly [string, string] {
  try {
    const [first, second] = cursor.split(SEPARATOR).map(decodeURIComponent)
    if (first !== undefined && second !== undefined) return [first, second]
  } catch {}
  throw new HttpProblem('INVALID_REQUEST', 'cursor must be the `next` of the page before.')
}
