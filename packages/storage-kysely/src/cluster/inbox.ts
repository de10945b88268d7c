import type {
  MessageCounts,
  MessageQuery,
  MessageRecord,
  NewMessage,
  PublishAnswer,
  Subscription,
  WaitingMessages,
} from '@coji/durably-core/storage'
import { sql } from 'kysely'
import { msUntil, readListing, type Reader, sumListing } from '../read'
import { createForget, createMessagePurge } from './inbox-removals'
import { IS_UNWANTED, listingOf } from './message-listing'
import { createReplay } from './replay'
import { toSubscription } from './subscription'
import {
  list,
  namesOf,
  rowsOf,
  type Sql,
  type SqlContext,
  statement,
  toMessage,
  valueOf,
  type WriteTarget,
} from '../statement'

/** What is not delivery. */
export function createInbox(context: SqlContext) {
  const { tables } = context
  const insert = insertStatement(context)
  const known = knownStatement(context)
  const forget = statement<'jobs'>(
    context,
    (p) =>
      sql`delete from ${tables.subscriptions} where job_name in (select value from ${context.dialect.listOf(p('jobs'))})`,
  )
  const subscribe = statement<'subscriptions'>(context, (p) => {
    const value = valueOf(context, 't')
    return sql`insert into ${tables.subscriptions} (job_name, type, definition)
      select ${value('jobName')}, ${value('type')}, ${value('definition')}
      from ${rowsOf(context, p('subscriptions'), ['jobName', 'type', 'definition'])} where true
      on conflict (type, job_name) do update set definition = excluded.definition`
  })
  return {
    async publish(target: WriteTarget, messages: readonly NewMessage[]): Promise<readonly PublishAnswer[]> {
      const rows = JSON.stringify(messages.map(valuesOf))
      const [, found = []] = await target.write([insert.bind({ messages: rows }), known.bind({ messages: rows })])
      const records = found.map(toMessage)
      const byId = new Map(records.map((record) => [record.id, record]))
      const byKey = new Map(records.map((record) => [keyOf(record), record]))
      return messages.map((message) => {
        const own = byId.get(message.id)
        const holder = own ?? byKey.get(keyOf(message))
        return { message: holder as MessageRecord, created: own !== undefined }
      })
    },
    async subscribe(target: WriteTarget, jobNames: readonly string[], subscriptions: readonly Subscription[]) {
      const jobs = JSON.stringify(jobNames)
      await target.write([forget.bind({ jobs }), subscribe.bind({ subscriptions: JSON.stringify(subscriptions) })])
    },
    ...createReads(context),
    replay: createReplay(context),
    purge: createMessagePurge(context),
    forget: createForget(context),
  }
}

function insertStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'messages'>(context, (p) => {
    const value = valueOf(context, 't')
    const columns = {
      id: value('id'),
      tenant: value('tenant'),
      type: value('type'),
      payload: value('payload'),
      dedupe_key: value('dedupeKey'),
      available_at: sql`case when ${value('startAt')} is null then ${dialect.nowPlus(value('afterMs'))}
        when ${value('startAt')} < ${dialect.now} then ${dialect.now} else ${value('startAt')} end`,
      created_at: dialect.now,
    }
    const names = ['id', 'tenant', 'type', 'payload', 'dedupeKey', 'startAt', 'afterMs'] as const
    return sql`insert into ${tables.inbox} (${namesOf(columns)}) select ${list(...Object.values(columns))}
      from ${rowsOf(context, p('messages'), names)} where true order by t.n on conflict do nothing`
  })
}

/** Those that are there, by their ids or their keys: each is looked up. */
function knownStatement(context: SqlContext) {
  const { tables, dialect } = context
  return statement<'messages'>(context, (p) => {
    const wanted = rowsOf(context, p('messages'), ['id', 'tenant', 'dedupeKey'])
    const holder = sql`(select i.id from ${tables.inbox} as i
      where i.tenant = t.tenant and i.dedupe_key = t."dedupeKey" and i.dedupe_key is not null)`
    return sql`select ${dialect.columns('inbox', 'm')} from ${tables.inbox} as m
      where ${dialect.isAmong(sql`m.id`, sql`select t.id from ${wanted} union select ${holder} from ${wanted}`)}`
  })
}

function valuesOf({ id, tenant, type, payload, dedupeKey, start }: NewMessage, n: number) {
  const times = 'at' in start ? { startAt: start.at, afterMs: 0 } : { startAt: null, afterMs: start.afterMs }
  return { n, id, tenant, type, payload, dedupeKey, ...times }
}

function keyOf({ tenant, dedupeKey }: Pick<MessageRecord, 'tenant' | 'dedupeKey'>): string {
  return JSON.stringify([tenant, dedupeKey])
}

function createReads(context: SqlContext) {
  const { tables, dialect } = context
  const look = statement<never>(context, () => {
    const first = (condition: Sql) =>
      sql`(select ${dialect.read(sql`min(m.available_at)`, 'instant')} from ${tables.inbox} as m
        where m.processed_at is null and ${condition})`
    return sql`select ${dialect.read(dialect.now, 'instant')} as now,
      ${first(sql`m.available_at <= ${dialect.now}`)} as due_at, ${first(sql`m.available_at > ${dialect.now}`)} as next_at`
  })
  const due = statement<'limit'>(
    context,
    (p) => sql`select ${dialect.columns('inbox', 'm')} from ${tables.inbox} as m
      where m.processed_at is null and m.available_at <= ${dialect.now}
      order by m.available_at, m.id limit ${p('limit')}`,
  )
  const wishes = statement<'types'>(
    context,
    (p) => sql`select ${dialect.columns('subscriptions', 'w')} from ${tables.subscriptions} as w
      where w.type in (select value from ${dialect.listOf(p('types'))}) order by w.job_name`,
  )
  return {
    /** While nothing waits it is one look at an index. */
    async waiting(reader: Reader, limit: number): Promise<WaitingMessages> {
      const [seen = {}] = await reader.read(look.bind({}))
      const messages = seen['due_at'] === null ? [] : (await reader.read(due.bind({ limit }))).map(toMessage)
      const types = JSON.stringify([...new Set(messages.map(({ type }) => type))])
      const wanted = messages.length === 0 ? [] : await reader.read(wishes.bind({ types }))
      return { messages, subscriptions: wanted.map(toSubscription), nextInMs: msUntil(seen['next_at'], seen['now']) }
    },
    async list(
      reader: Reader,
      { limit, after, ...query }: MessageQuery & { limit?: number; after?: Pick<MessageRecord, 'id' | 'createdAt'> },
    ): Promise<readonly MessageRecord[]> {
      const place = after === undefined ? undefined : ([after.createdAt, after.id] as const)
      return (await readListing({ context, reader, listing: listingOf(context, query) }, { limit, after: place })).map(
        toMessage,
      )
    },
    async counts(reader: Reader, scope: { readonly tenant?: string }): Promise<MessageCounts> {
      const sum = (condition: Sql) => sql`coalesce(sum(case when ${condition} then 1 else 0 end), 0)`
      const sums = {
        waiting: sum(sql`processed_at is null`),
        processed: sum(sql`processed_at is not null`),
        unwanted: sum(IS_UNWANTED),
      }
      const counted = await sumListing({ context, reader, listing: listingOf(context, scope) }, sums)
      const count = (name: keyof typeof sums) => counted.get(name) ?? 0
      return { waiting: count('waiting'), processed: count('processed'), unwanted: count('unwanted') }
    },
  }
}
