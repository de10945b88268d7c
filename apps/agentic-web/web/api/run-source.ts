import { createDurablyClient } from '@coji/durably-server/client'
import type { StoredEvent } from '@coji/durably'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ask, open } from './request'

/** `GET /api/runs/:id/events`: the client reconnects by itself, and goes on with `Last-Event-ID`. */
const client = createDurablyClient({ url: '/api' })

export type Events = AsyncIterable<StoredEvent>

export function followRun(runId: string, after: number, signal: AbortSignal): Events {
  return client.subscribe(runId, { after, signal })
}

/** `POST /api/runs`. The same key once more is the same run. */
export async function startRun(session_id: string, message: string, idempotency_key: string): Promise<string> {
  const body = { session_id, message, idempotency_key }
  return (await ask<{ run_id: string }>('/api/runs', { method: 'POST', body })).run_id
}

export interface StartedChat {
  readonly runId: string
  /** Ends with the answer, and rejects when it is cut off before. */
  readonly events: Events
}

/** `POST /api/chat/:sessionId`: the answer is the stream, and says first which run it is. */
export async function startChat(sessionId: string, message: string, signal: AbortSignal): Promise<StartedChat> {
  const path = `/api/chat/${encodeURIComponent(sessionId)}`
  const { body } = await open(path, { method: 'POST', body: { message } }, signal)
  if (body === null) throw new Error('The answer is empty.')
  const messages = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
    .getReader()
  const first = await messages.read()
  if (first.done || first.value.event !== 'run') throw new Error('The answer does not say which run it is of.')
  const { run_id: runId } = JSON.parse(first.value.data) as { run_id: string }
  async function* rest(): AsyncGenerator<StoredEvent> {
    for (;;) {
      const { done, value } = await messages.read()
      if (done) throw new Error('The answer was cut off.')
      if (value.event === 'done') return
      yield JSON.parse(value.data) as StoredEvent
    }
  }
  return { runId, events: rest() }
}
