import type { Delivery, Lead, MessageRecord, NewMessage, NewRun } from '../../port'
import { assert } from '../assert'
import { FAR_MS, newId, newRun } from './builders'
import type { Kit } from './kit'

export const FUTURE = '2999-01-31T09:00:00.000Z'

export function newMessage(over: Partial<NewMessage> = {}): NewMessage {
  const content = { type: 'user.created', payload: '{"n":1}', dedupeKey: null } as const
  return { id: newId(), tenant: '', ...content, start: { afterMs: 0 }, ...over }
}

export async function publish(kit: Kit, over: Partial<NewMessage> = {}): Promise<MessageRecord> {
  const [answer] = await kit.cluster.inbox.publish([newMessage(over)])
  assert(answer?.created === true, 'publish: should have kept the message')
  return answer.message
}

export async function leadOf(kit: Kit, workerId = 'w-1', ttlMs = FAR_MS): Promise<Lead> {
  const lead = await kit.cluster.lead({ name: 'inbox', workerId, ttlMs })
  assert(lead !== null, 'lead: should be free')
  return lead
}

export function deliveryOf({ id: messageId, round }: MessageRecord, runs: readonly NewRun[] = [newRun()]): Delivery {
  return { messageId, round, wanted: runs.length, runs, gathered: [] }
}

export async function messageOf(kit: Kit, id: string): Promise<MessageRecord> {
  const found = (await kit.cluster.inbox.list({})).find((message) => message.id === id)
  assert(found !== undefined, `list: message ${id} should be there`)
  return found
}

export async function waitingIds(kit: Kit, limit = 10): Promise<readonly string[]> {
  return (await kit.cluster.inbox.waiting(limit)).messages.map(({ id }) => id)
}
