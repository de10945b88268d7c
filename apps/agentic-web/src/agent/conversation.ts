import { randomUUID } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { MessageContent } from '../contract'
import type { Tables } from '../database/tables'
import type { AgentInput } from './declaration'

interface Said {
  readonly of: Pick<AgentInput, 'session_id' | 'user_id' | 'place'>
  readonly runId: string
  readonly position: number
  readonly content: MessageContent
}

/** Keeps what was said at its place of the conversation, once. Of a session that is gone nothing is kept. */
export async function keepMessage(trx: Transaction<Tables>, { of, runId, position, content }: Said): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('messages')
    .columns(['message_id', 'session_id', 'user_id', 'run_id', 'place', 'position', 'content'])
    .expression(
      trx
        .selectFrom('sessions')
        .where('session_id', '=', of.session_id)
        .where('user_id', '=', of.user_id)
        .select(({ val, cast }) => [
          val(randomUUID()).as('message_id'),
          'session_id',
          'user_id',
          val(runId).as('run_id'),
          cast<string>(val(of.place), 'bigint').as('place'),
          cast<number>(val(position), 'integer').as('position'),
          cast<never>(val(JSON.stringify(content)), 'json').as('content'),
        ]),
    )
    .onConflict((conflict) => conflict.columns(['run_id', 'position']).doNothing())
    .executeTakeFirst()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** What was said up to and in this run, as a model may be told of it. */
export async function readConversation(
  db: Kysely<Tables>,
  { session_id, user_id, place }: Pick<AgentInput, 'session_id' | 'user_id' | 'place'>,
): Promise<MessageContent[]> {
  const rows = await db
    .selectFrom('messages')
    .where('session_id', '=', session_id)
    .where('user_id', '=', user_id)
    .where('place', '<=', place)
    .orderBy('place')
    .orderBy('position')
    .select('content')
    .execute()
  return answered(recent(rows.map(({ content }) => content)))
}

/** So much of a long conversation is told, its end, beginning with what the user said. */
const LONGEST_TOLD = 400_000

export function recent(messages: readonly MessageContent[]): readonly MessageContent[] {
  let from = messages.length
  let length = 0
  for (let index = messages.length - 1; index >= 0; index--) {
    length += JSON.stringify(messages[index]).length
    if (length > LONGEST_TOLD && from < messages.length) break
    if (messages[index]?.role === 'user') from = index
  }
  return messages.slice(from)
}

const UNKNOWN = 'Nobody knows whether this was carried out: the run was stopped before.'

/** Models refuse a conversation in which a call has no result, as one of a run that was stopped. */
export function answered(messages: readonly MessageContent[]): MessageContent[] {
  const whole: MessageContent[] = []
  let open: Extract<MessageContent, { role: 'tool' }>[] = []
  const close = () => {
    whole.push(...open)
    open = []
  }
  for (const message of messages) {
    if (message.role === 'tool') open = open.filter(({ call }) => call !== message.call)
    else close()
    whole.push(message)
    if (message.role !== 'assistant') continue
    open = message.toolCalls.map(({ call, tool, arguments: given }) => {
      return { role: 'tool', call, tool, arguments: given, result: UNKNOWN, isError: true }
    })
  }
  close()
  return whole
}
