import { type CommandOptions, ConflictError, type Durably } from '@coji/durably-core'
import {
  instantIn,
  refuseBadText,
  requireDelay,
  refuseUnknownOptions,
  requireDuration,
  type OptionNames,
} from '@coji/durably-core/extend'
import type {
  Lead,
  MessageCounts,
  MessageQuery,
  MessageRecord,
  MessageReplay,
  ReplayAnswer,
} from '@coji/durably-core/storage'
import { clusterOf } from './cluster-of'
import { refuseBadConditions, refuseBadPlace } from './conditions'
import { deliverWaiting } from './deliver'
import { Duty, soonest } from './duty'
import { releaseGathered } from './release'
import { subscribing } from './subscriptions'
import { AT_ONCE, DAY_MS, hourly, removeAll } from './upkeep'

/** What `createInbox` takes. */
export interface InboxOptions {
  /** Delivered messages are removed after so many milliseconds, and their dedupe keys with them. Default 30 days. */
  readonly keep?: number | undefined
  /** Milliseconds between two looks for messages of other processes. Default 1000. */
  readonly pollingInterval?: number | undefined
}

/** Which messages. */
export interface MessageFilter {
  /** Of this type, or of one of these. */
  readonly type?: string | readonly string[] | undefined
  /** Those of this tenant. */
  readonly tenant?: string | undefined
  /** Published at this instant or later. */
  readonly from?: Date | string | undefined
  /** Published before this instant. */
  readonly before?: Date | string | undefined
  /** Delivered, and no job wanted it; or not so. */
  readonly unwanted?: boolean | undefined
}

/** A message as it was when it was read. */
export interface InboxMessage extends Omit<MessageRecord, 'payload' | 'round'> {
  readonly payload: unknown
}

/** What `list` takes beside a filter. */
export interface MessagePage extends MessageFilter {
  /** So many at most. Default: all. */
  readonly limit?: number | undefined
  /** The last one of the page before. */
  readonly after?: Pick<InboxMessage, 'id' | 'createdAt'> | undefined
}

/** Which delivered messages are removed. */
export interface MessagePurgeOptions extends CommandOptions {
  /** Those that were delivered longer ago than this many milliseconds. */
  readonly olderThan: number
}

/** The messages of an instance. They are delivered from `durably.start()` to `durably.stop()`, by one process at a time. */
export interface Inbox {
  /** Delivers what waits, once, for serverless functions and tests. */
  drain(): Promise<{ readonly delivered: number }>
  /** The oldest first. */
  list(filter?: MessagePage): Promise<InboxMessage[]>
  counts(scope?: { readonly tenant?: string }): Promise<MessageCounts>
  /** Sends delivered messages out anew: each job that wants them now gets a new run of each. Answers how many these are. */
  replay(filter: MessageFilter, options?: CommandOptions): Promise<number>
  /**
   * A job gets no more messages: for one that has left the code, which nobody can tell by itself. A process that still has it says
   * anew at its start what it wants.
   */
  forget(jobName: string, options?: CommandOptions): Promise<void>
  /** Removes delivered messages. Answers how many. */
  purge(options: MessagePurgeOptions): Promise<number>
}

/**
 * Delivers messages of `durably.publish()` to the jobs that want them (`on`). Any number of processes may have one on the same
 * database; each message is one run of each job.
 */
export function createInbox(durably: Durably, options: InboxOptions = {}): Inbox {
  refuseUnknownOptions('createInbox()', options, { keep: true, pollingInterval: true })
  const { keep = 30 * DAY_MS, pollingInterval = 1000 } = options
  requireDuration('keep', keep)
  requireDuration('pollingInterval', pollingInterval)
  const cluster = clusterOf(durably, 'createInbox()')
  const { inbox } = cluster
  let delivered = 0
  const remove = (lead: Lead, limit: number) => inbox.purge(lead, { olderThanMs: keep, limit })
  const upkeep = hourly({ durably, cluster, remove })

  const duty: Duty = new Duty({
    ...{ durably, cluster, name: 'inbox', everyMs: pollingInterval },
    ...subscribing(durably, inbox),
    async work(lead) {
      const delivery = await deliverWaiting({ durably, cluster }, lead)
      const released = await releaseGathered({ durably, cluster }, lead)
      delivered += delivery.delivered
      if (delivery.isLost || released.isLost) duty.forgetLead()
      return soonest([delivery.nextInMs, released.nextInMs, await upkeep.turn(lead)])
    },
  })
  durably.use({ name: 'inbox', whileStarted: () => duty.start() })
  durably.on('inbox:published', () => duty.wake())
  return {
    async drain() {
      const before = delivered
      await duty.workNow()
      return { delivered: delivered - before }
    },
    async list(filter = {}) {
      refuseUnknownOptions('list()', filter, PAGE)
      const { limit, after } = filter
      refuseBadConditions({ texts: {}, flags: {}, limit })
      refuseBadPlace(after, ['id', 'createdAt'])
      const page = { ...(limit !== undefined && { limit }), ...(after !== undefined && { after: placeIn(after) }) }
      return (await inbox.list({ ...toQuery(filter), ...page })).map(toMessage)
    },
    async counts(scope = {}) {
      refuseUnknownOptions('counts()', scope, { tenant: true })
      const { tenant } = scope
      refuseBadText('tenant', tenant)
      return inbox.counts(tenant === undefined ? {} : { tenant })
    },
    async replay(filter, options = {}) {
      refuseUnknownOptions('replay()', filter, FILTER)
      refuseUnknownOptions('replay()', options, { as: true })
      const query = toQuery(filter)
      return inBatches(durably, async (batch) => {
        const answer = await inbox.replay({ query, ...batch, ...durably.drafts.noted('inbox.replay', options.as) })
        duty.wake()
        return answer
      })
    },
    async forget(jobName, options = {}) {
      refuseUnknownOptions('forget()', options, { as: true })
      refuseBadText('The name of a job', jobName ?? null)
      refuseWanting(durably, jobName)
      await inbox.forget(jobName, durably.drafts.noted('inbox.forget', options.as).audit)
    },
    async purge(options) {
      refuseUnknownOptions('purge()', options, { olderThan: true, as: true })
      const { olderThan: olderThanMs, as } = options
      requireDelay('olderThan', olderThanMs)
      return removeAll(durably, (limit) =>
        inbox.purge(null, { olderThanMs, limit, ...durably.drafts.noted('inbox.purge', as) }),
      )
    },
  }
}

type ReplayBatch = Pick<MessageReplay, 'limit' | 'cursor'>

/** So many at a time, until there is no next batch. */
async function inBatches({ drafts }: Durably, replay: (batch: ReplayBatch) => Promise<ReplayAnswer>): Promise<number> {
  let count = 0
  for (let batch: ReplayBatch = { limit: AT_ONCE }; ; ) {
    const { replayed, next } = await replay(batch)
    count += replayed
    if (next === null) return count
    await drafts.breathe()
    batch = { limit: AT_ONCE, cursor: next }
  }
}

function refuseWanting({ drafts }: Durably, jobName: string): void {
  if (!drafts.jobs().some(({ name, on }) => name === jobName && on.length > 0)) return
  throw new ConflictError(`Job "${jobName}" wants messages in this very process. Take it out of the code first.`, '')
}

const FILTER: OptionNames<MessageFilter> = { type: true, tenant: true, from: true, before: true, unwanted: true }
const PAGE: OptionNames<MessagePage> = { ...FILTER, limit: true, after: true }

/** Databases compare instants as they stand. */
function placeIn({ id, createdAt }: NonNullable<MessagePage['after']>) {
  return { id, createdAt: instantIn('createdAt of after', createdAt) }
}

function toQuery({ type, tenant, from, before, unwanted }: MessageFilter): MessageQuery {
  const types = type === undefined || Array.isArray(type) ? type : [type as string]
  const ofTypes = (types ?? []).map((each, place) => [`type ${place + 1}`, each ?? null])
  refuseBadConditions({ texts: { tenant, ...Object.fromEntries(ofTypes) }, flags: { unwanted } })
  return {
    ...(types !== undefined && { types }),
    ...(tenant !== undefined && { tenant }),
    ...(from !== undefined && { from: instantIn('from', from) }),
    ...(before !== undefined && { before: instantIn('before', before) }),
    ...(unwanted !== undefined && { isUnwanted: unwanted }),
  }
}

function toMessage({ payload, round: _round, ...message }: MessageRecord): InboxMessage {
  return { ...message, payload: payload === null ? undefined : (JSON.parse(payload) as unknown) }
}
