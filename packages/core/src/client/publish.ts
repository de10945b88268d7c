import {
  encodeValue,
  instantIn,
  InvalidOptionError,
  type OptionNames,
  requireDelay,
  refuseBadKey,
  refuseBadText,
  refuseUnknownOptions,
} from '../base'
import type { Engine } from '../engine'
import { capability, type NewMessage } from '../port'
import { commonTransaction } from './caller-transaction'
import { retriedWrite } from './retried-write'

/** Something that has happened, for the jobs that want to know (`on`). */
export interface Message {
  /** Such as `user.created`. */
  readonly type: string
  /** What the jobs get. JSON, as the payload of a run. */
  readonly payload?: unknown
  /** A second message with the same key is not kept, for as long as the first one is there. */
  readonly dedupeKey?: string | undefined
  /** Not before this instant. */
  readonly at?: Date | string | undefined
  /** Not before so many milliseconds have passed. */
  readonly delay?: number | undefined
  /** Whose message it is, and whose its runs are. Default: nobody's in particular. */
  readonly tenant?: string | undefined
  /** A transaction of the caller's, as for `trigger`: the message is there when it is committed, and never was when it is not. */
  readonly transaction?: unknown
}

/** `deduplicated`: a message of this key is there already, and `id` is its id. */
export interface PublishedMessage {
  readonly id: string
  readonly deduplicated: boolean
}

/** Telling what has happened. */
export interface Publishing<TMessage> {
  /**
   * Keeps a message. Each job that wants it gets one run of it, created by the process that has an inbox
   * (`createInbox(durably)`) and its turn.
   */
  publish(message: TMessage): Promise<PublishedMessage>
}

const MESSAGE: OptionNames<Message> = {
  type: true,
  payload: true,
  dedupeKey: true,
  at: true,
  delay: true,
  tenant: true,
  transaction: true,
}
const { tenant: _tenant, ...SCOPED_MESSAGE } = MESSAGE

/** `tenant` is one that the caller cannot choose. */
export function createPublishing(engine: Engine, tenant?: string): Publishing<Message> {
  return {
    async publish(message) {
      refuseUnknownOptions('publish()', message, tenant === undefined ? MESSAGE : SCOPED_MESSAGE)
      const wanted = newMessage(engine, tenant === undefined ? message : { ...message, tenant })
      const { inbox } = capability(engine.storage, 'cluster', 'publish()')
      const transaction = commonTransaction([message.transaction])
      if (transaction !== null) capability(engine.storage, 'transaction', 'publish({ transaction })')
      const [answer] = await (transaction === null
        ? retriedWrite(engine, 'publish()', () => inbox.publish([wanted]))
        : inbox.publish([wanted], transaction))
      const created = answer?.created === true
      const { id, type: messageType, tenant: owner } = answer?.message ?? wanted
      const announce = () => engine.events.emit({ type: 'inbox:published', messageId: id, messageType, tenant: owner })
      if (created && transaction === null) announce()
      if (created && transaction !== null) engine.openTransactions.get(transaction)?.push(announce)
      return { id, deduplicated: !created }
    },
  }
}

function newMessage({ environment }: Engine, message: Message): NewMessage {
  const { type, payload, dedupeKey, at, delay, tenant } = message
  refuseBadKey('The type of a message', type)
  if (type === undefined) throw new InvalidOptionError('A message needs a type.')
  refuseBadKey('dedupeKey', dedupeKey)
  refuseBadText('tenant', tenant)
  if (at !== undefined && delay !== undefined) throw new InvalidOptionError('Give either at or delay, not both.')
  if (delay !== undefined) requireDelay('delay', delay)
  return {
    id: environment.createId(),
    tenant: tenant ?? '',
    type,
    payload: encodeValue(payload, `The payload of message "${type}"`),
    dedupeKey: dedupeKey ?? null,
    start: at === undefined ? { afterMs: delay ?? 0 } : { at: instantIn('at', at) },
  }
}
