import type { Json } from '../base'
import type { AuditNote } from './audit'
import type { Lead } from './cluster-storage'
import type { Instant } from './records'
import type { NewRun } from './writes'

/** A message on its way into the inbox. */
export interface NewMessage {
  /** A ULID made by the caller: the same message sent twice is there once. */
  readonly id: string
  readonly tenant: string
  readonly type: string
  readonly payload: Json | null
  /** A second message with the same key of the tenant is not kept. */
  readonly dedupeKey: string | null
  /** When it is delivered: after a delay, or at an instant the user gave; one in the past is now. */
  readonly start: { readonly afterMs: number } | { readonly at: Instant }
}

/** A message as a storage has it. */
export interface MessageRecord extends Omit<NewMessage, 'start'> {
  readonly availableAt: Instant
  readonly createdAt: Instant
  /** When its runs were created; `null` while it waits for that. */
  readonly processedAt: Instant | null
  /** How many jobs wanted it. */
  readonly wanted: number
  /** How often it was sent out anew. */
  readonly round: number
}

/** `created` is false when another message has the dedupe key; `message` is then that one. */
export interface PublishAnswer {
  readonly message: MessageRecord
  readonly created: boolean
}

/** Which messages a job wants, as all processes know it. A storage never reads `definition`. */
export interface Subscription {
  readonly jobName: string
  readonly type: string
  readonly definition: Json
}

/** What waits to be delivered. */
export interface WaitingMessages {
  /** The first `limit` by `availableAt`, then id. */
  readonly messages: readonly MessageRecord[]
  /** Of the types of these messages. */
  readonly subscriptions: readonly Subscription[]
  /** Until the next one is to be delivered, when none of them is left out; `null` without one. */
  readonly nextInMs: number | null
}

/** A message that is kept for a job until others have come, or have not. */
export interface NewGathered {
  readonly jobName: string
  /** Messages of one job, tenant and key become one run. */
  readonly key: string
  /** The last of them makes the run, so long after it; or all of them, so long after the first, or when there are `max`. */
  readonly mode: 'last' | 'all'
  readonly waitMs: number
  readonly max: number
}

/** Messages that make a run now, in the order of their delivery. */
export interface RipeGroup extends Pick<NewGathered, 'jobName' | 'key' | 'mode'> {
  readonly tenant: string
  /** The id of each begins with that of its message, before a space. */
  readonly members: readonly { readonly id: string; readonly payload: Json | null }[]
}

/** What has been gathered. */
export interface RipeGroups {
  readonly groups: readonly RipeGroup[]
  /** Until the next group is ripe, when no other message comes; `null` without one. */
  readonly nextInMs: number | null
}

/** Gathered messages that have led to a run; to none when `run` is `null`. */
export interface Release {
  readonly members: readonly string[]
  readonly run: NewRun | null
}

/** What a message has led to. */
export interface Delivery {
  readonly messageId: string
  /** As it was read. */
  readonly round: number
  /** How many jobs wanted it, and got it. */
  readonly wanted: number
  readonly runs: readonly NewRun[]
  readonly gathered: readonly NewGathered[]
}

/** `kept` is false when somebody else has delivered it, or the lead is lost. `created`: ids of the runs that were not there yet. */
export interface DeliveryAnswer {
  readonly kept: boolean
  readonly created: readonly string[]
}

/** Oldest first. */
export interface MessageQuery {
  readonly tenant?: string
  readonly types?: readonly string[]
  /** Whether it was delivered. */
  readonly isProcessed?: boolean
  /** Delivered, and nobody wanted it. */
  readonly isUnwanted?: boolean
  /** Published from here on, and before that. */
  readonly from?: Instant
  readonly before?: Instant
}

/** The place of a message in the order of publishing. */
export type MessagePlace = Pick<MessageRecord, 'id' | 'createdAt'>

/** What a replay has yet to look at. */
export interface ReplayCursor {
  readonly after: MessagePlace
  /** The newest message when it began. */
  readonly until: MessagePlace
}

/** A batch of a replay: it looks at so many messages and no more. */
export interface MessageReplay {
  readonly query: MessageQuery
  readonly limit: number
  /** Where the batch before has ended. */
  readonly cursor?: ReplayCursor
  /** Of who does it by hand. */
  readonly audit?: AuditNote
}

/** `next`: where the next batch goes on; `null`: there is none. */
export interface ReplayAnswer {
  readonly replayed: number
  readonly next: ReplayCursor | null
}

/** Delivered longer ago than this, `limit` of them at most. */
export interface MessagePurge {
  readonly olderThanMs: number
  readonly limit: number
  /** Of who does it by hand. */
  readonly audit?: AuditNote
}

/** How many messages there are. */
export interface MessageCounts {
  readonly waiting: number
  readonly processed: number
  /** Of the processed ones: those that nobody wanted. */
  readonly unwanted: number
}

/** Messages: each creates the runs of the jobs that want it, once. */
export interface InboxStorage<Trx = unknown> {
  /** All or nothing, answers in order. In a transaction of the caller's where one is given. */
  publish(messages: readonly NewMessage[], transaction?: Trx): Promise<readonly PublishAnswer[]>
  /** What these jobs want from now on, and nothing else; of a job without a subscription nothing is left. */
  subscribe(jobNames: readonly string[], subscriptions: readonly Subscription[]): Promise<void>
  /** A job wants nothing any more. */
  forget(jobName: string, audit?: AuditNote): Promise<void>
  waiting(limit: number): Promise<WaitingMessages>
  /** Creates the runs and marks the messages as delivered, in one write; one answer a delivery, in order. */
  deliver(lead: Lead, deliveries: readonly Delivery[]): Promise<readonly DeliveryAnswer[]>
  /** Of `limit` groups at most, with what their jobs want; of one whose messages are more than `max` the first ones. */
  ripe(limit: number): Promise<RipeGroups & Pick<WaitingMessages, 'subscriptions'>>
  /** Creates the runs and forgets what they were gathered from, in one write; one answer a release, in order. */
  release(lead: Lead, releases: readonly Release[]): Promise<readonly DeliveryAnswer[]>
  /** Oldest first; a page goes on after the last message of the one before. */
  list(
    query: MessageQuery & { readonly limit?: number; readonly after?: MessagePlace },
  ): Promise<readonly MessageRecord[]>
  counts(scope: { readonly tenant?: string }): Promise<MessageCounts>
  /** Has delivered messages delivered again: each once, however often it is delivered before the last batch, and none that came later. */
  replay(batch: MessageReplay): Promise<ReplayAnswer>
  /** How many messages were removed; none without the lead. `null`: somebody does it by hand. */
  purge(lead: Lead | null, params: MessagePurge): Promise<number>
}
