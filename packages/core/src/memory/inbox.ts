import { CapabilityMissingError } from '../base'
import type {
  AuditNote,
  Delivery,
  DeliveryAnswer,
  InboxStorage,
  Lead,
  MessagePlace,
  MessagePurge,
  MessageQuery,
  MessageRecord,
  MessageReplay,
  NewMessage,
  PublishAnswer,
  Release,
  ReplayAnswer,
  WaitingMessages,
} from '../port'
import type { Operations } from './cluster'
import { enqueueOne } from './enqueue'
import { isBefore } from './in-order'
import type { Memory } from './memory'

export function createInbox(memory: Memory, { read, write }: Operations): InboxStorage {
  const { messages } = memory
  return {
    async publish(list, transaction) {
      if (transaction !== undefined) throw new CapabilityMissingError('transaction', 'publish({ transaction })')
      return write(() => list.map((message) => publish(memory, message)))
    },
    subscribe: (jobNames, subscriptions) =>
      write(() => {
        const others = messages.subscriptions.filter(({ jobName }) => !jobNames.includes(jobName))
        messages.subscriptions = [...others, ...subscriptions]
      }),
    forget: (jobName, audit) => write(() => forget(memory, jobName, audit)),
    waiting: (limit) => read(() => waiting(memory, limit)),
    deliver: (lead, deliveries) => write(() => deliveries.map((delivery) => deliver(memory, lead, delivery))),
    ripe: (limit) => read(() => ripe(memory, limit)),
    release: (lead, releases) => write(() => releases.map((release) => settle(memory, lead, release))),
    list: ({ limit, after, ...query }) =>
      read(() => {
        const found = messages.all().filter(matching(query))
        const isAfter = (each: MessageRecord) => after === undefined || isBefore(placeOf(after), placeOf(each))
        return inOrder(found.filter(isAfter), ({ createdAt }) => createdAt).slice(0, limit)
      }),
    counts: ({ tenant }) =>
      read(() => {
        const all = messages.all().filter((each) => tenant === undefined || each.tenant === tenant)
        const processed = all.filter(({ processedAt }) => processedAt !== null)
        const unwanted = processed.filter(({ wanted }) => wanted === 0)
        return { waiting: all.length - processed.length, processed: processed.length, unwanted: unwanted.length }
      }),
    replay: (batch) => write(() => replay(memory, batch)),
    purge: (lead, params) => write(() => (lead === null || memory.leads.isCurrent(lead) ? purge(memory, params) : 0)),
  }
}

function forget({ messages, audit }: Memory, jobName: string, by: AuditNote | undefined): void {
  const gone = messages.subscriptions.filter((each) => each.jobName === jobName)
  messages.subscriptions = messages.subscriptions.filter((each) => each.jobName !== jobName)
  if (by === undefined || gone.length === 0) return
  const wanted = Object.fromEntries(gone.map(({ type, definition }) => [type, JSON.parse(definition) as unknown]))
  audit.add(by, { tenant: '', targetKind: 'job', target: jobName, before: { on: wanted }, after: null })
}

function replay({ messages, audit }: Memory, { query, limit, cursor, audit: by }: MessageReplay): ReplayAnswer {
  const all = inOrder(messages.all().filter(matching(timesOf(query))), ({ createdAt }) => createdAt)
  const until = cursor?.until ?? all.at(-1)
  if (until === undefined) return { replayed: 0, next: null }
  const isAhead = (each: MessageRecord) =>
    !isBefore(placeOf(until), placeOf(each)) && (cursor === undefined || isBefore(placeOf(cursor.after), placeOf(each)))
  const looked = all.filter(isAhead).slice(0, limit)
  const found = looked.filter(matching({ ...query, isProcessed: true }))
  for (const each of found) messages.put({ ...each, processedAt: null, wanted: 0, round: each.round + 1 })
  const of = { tenant: query.tenant ?? '', targetKind: 'messages', target: '', before: null } as const
  if (by !== undefined && found.length > 0) audit.add(by, { ...of, after: { messages: found.length, of: query } })
  const after = looked.length < limit ? undefined : looked.at(-1)
  return { replayed: found.length, next: after === undefined ? null : { after: keyOf(after), until: keyOf(until) } }
}

/** The oldest first. */
function purge({ messages, clock, audit }: Memory, { olderThanMs, limit, audit: by }: MessagePurge): number {
  const before = clock.in(-olderThanMs)
  const isOld = ({ processedAt }: MessageRecord) => processedAt !== null && processedAt <= before
  const old = inOrder(messages.all().filter(isOld), ({ processedAt }) => processedAt ?? '').slice(0, limit)
  for (const each of old) messages.remove(each)
  const ids = old.map(({ id }) => id)
  const of = { tenant: '', targetKind: 'messages', target: '', after: null } as const
  if (by !== undefined && ids.length > 0) audit.add(by, { ...of, before: { messages: ids } })
  return ids.length
}

function publish({ messages, clock }: Memory, { start, ...message }: NewMessage): PublishAnswer {
  const sentBefore = messages.find(message.id)
  if (sentBefore !== undefined) return { message: sentBefore, created: true }
  const holder = messages.findByKey(message)
  if (holder !== undefined) return { message: holder, created: false }
  const now = clock.now()
  const asked = 'at' in start ? start.at : clock.in(start.afterMs)
  const availableAt = isBefore([asked], [now]) ? now : asked
  const record = { ...message, availableAt, createdAt: now, processedAt: null, wanted: 0, round: 0 }
  return { message: messages.put(record), created: true }
}

function waiting({ messages, clock }: Memory, limit: number): WaitingMessages {
  const now = clock.now()
  const all = inOrder(messages.waiting(), ({ availableAt }) => availableAt)
  const due = all.filter(({ availableAt }) => availableAt <= now).slice(0, limit)
  const next = all.find(({ availableAt }) => availableAt > now)
  const types = new Set(due.map(({ type }) => type))
  return {
    messages: due,
    subscriptions: messages.subscriptions.filter(({ type }) => types.has(type)),
    nextInMs: next === undefined ? null : clock.until(next.availableAt),
  }
}

function deliver(memory: Memory, lead: Lead, delivery: Delivery): DeliveryAnswer {
  const { messageId, round, wanted, runs, gathered } = delivery
  const { messages, clock, leads } = memory
  const before = messages.find(messageId)
  const isAsRead = before !== undefined && before.processedAt === null && before.round === round
  if (!isAsRead || !leads.isCurrent(lead)) return { kept: false, created: [] }
  const created = runs.map((run) => enqueueOne(memory, run)).filter((answer) => answer.created)
  for (const each of gathered) {
    const { tenant, payload } = before
    memory.gathered.add({ ...each, id: `${messageId} ${round} ${each.jobName}`, tenant, payload }, clock)
  }
  messages.put({ ...before, processedAt: clock.now(), wanted })
  return { kept: true, created: created.map(({ entry }) => entry.record.id) }
}

function ripe({ gathered, messages, clock }: Memory, limit: number) {
  const found = gathered.ripe(limit, clock)
  const jobs = new Set(found.groups.map(({ jobName }) => jobName))
  return { ...found, subscriptions: messages.subscriptions.filter(({ jobName }) => jobs.has(jobName)) }
}

function settle(memory: Memory, lead: Lead, release: Release): DeliveryAnswer {
  if (!memory.leads.isCurrent(lead) || !memory.gathered.take(release)) return { kept: false, created: [] }
  const created = release.run === null ? [] : [enqueueOne(memory, release.run)].filter((answer) => answer.created)
  return { kept: true, created: created.map(({ entry }) => entry.record.id) }
}

function matching({ tenant, types, isProcessed, isUnwanted, from, before }: MessageQuery) {
  return (message: MessageRecord): boolean =>
    (tenant === undefined || message.tenant === tenant) &&
    (types === undefined || types.includes(message.type)) &&
    (isProcessed === undefined || (message.processedAt !== null) === isProcessed) &&
    (isUnwanted === undefined || (message.processedAt !== null && message.wanted === 0) === isUnwanted) &&
    (from === undefined || message.createdAt >= from) &&
    (before === undefined || message.createdAt < before)
}

function timesOf({ from, before }: MessageQuery): MessageQuery {
  return { ...(from !== undefined && { from }), ...(before !== undefined && { before }) }
}

function placeOf({ createdAt, id }: MessagePlace): readonly string[] {
  return [createdAt, id]
}

function keyOf({ createdAt, id }: MessagePlace): MessagePlace {
  return { createdAt, id }
}

function inOrder(list: readonly MessageRecord[], by: (message: MessageRecord) => string): readonly MessageRecord[] {
  return [...list].sort((a, b) => (isBefore([by(a), a.id], [by(b), b.id]) ? -1 : 1))
}
