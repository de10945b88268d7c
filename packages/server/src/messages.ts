import type { Actor } from '@coji/durably-core'
import type { z } from 'zod'
import { namedAs } from './access'
import { readPage } from './list'
import { HttpProblem } from './problem'
import type { Call } from './route'
import { isForeign, ownScope, placeIn, placeOf, scopeOf, type ServedScope } from './scope'
import type { Server } from './server'
import type {
  MessageCounts,
  messageListQuerySchema,
  replayBodySchema,
  ServedMessage,
  tenantQuerySchema,
} from './wire-cluster'

/** Which messages. */
export interface ServedMessageFilter extends ServedScope {
  readonly type?: string | readonly string[] | undefined
  readonly unwanted?: boolean | undefined
  readonly from?: string | undefined
  readonly before?: string | undefined
}

/** What the server needs of `createInbox()`. */
export interface ServedInbox {
  list(
    filter: ServedMessageFilter & {
      readonly limit?: number | undefined
      readonly after?: { readonly id: string; readonly createdAt: string } | undefined
    },
  ): Promise<readonly ServedMessage[]>
  counts(scope: { readonly tenant?: string }): Promise<MessageCounts>
  replay(filter: ServedMessageFilter, options: { readonly as?: Actor | undefined }): Promise<number>
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

/** `POST /inbox/replay` */
export async function replayMessages({ access, server, body }: Call<unknown, z.output<typeof replayBodySchema>>) {
  const { tenant, ...filter } = body
  const by = namedAs(server.durably, access.actor)
  return { replayed: await inboxOf(server).replay({ ...filter, ...ownScope(access, tenant) }, by) }
}

function inboxOf({ settings: { inbox } }: Server): ServedInbox {
  if (inbox !== null) return inbox
  throw new HttpProblem('NOT_SERVED', 'The inbox is not served here: createDurablyHandler() was given none.')
}
