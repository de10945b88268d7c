import { InvalidOptionError, isEnded, NotFoundError } from '@coji/durably-core'
import type { EventStream, StoredEvent, SubscribeOptions } from '@coji/durably-core'
import type { RunHint } from '../wire'
import { messagesOf } from './connection'
import { pathOf } from './reads'
import type { Transport } from './transport'

/** The events of a run, once each and in order, over as many connections as it takes. */
export function subscribe(transport: Transport, id: string, options: SubscribeOptions = {}): EventStream {
  const { after = 0, signal } = options
  if (!Number.isSafeInteger(after) || after < 0) {
    throw new InvalidOptionError(`after must be the seq of an event, or 0, not ${String(after)}.`)
  }
  const end = new AbortController()
  const events = eventsOf(transport, { id, after, signal, end })
  return toStream(events, () => end.abort())
}

interface Following extends SubscribeOptions {
  readonly id: string
  readonly after: number
  readonly end: AbortController
}

async function* eventsOf(transport: Transport, { id, after, signal, end }: Following): AsyncGenerator<StoredEvent> {
  let seen = after
  let isKnown = false
  const onAbort = () => end.abort()
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted === true) onAbort()
  try {
    const messages = messagesOf(transport, {
      path: pathOf(id, '/events'),
      headers: () => ({ 'last-event-id': String(seen) }),
      signal: end.signal,
      onConnected: () => {
        isKnown = true
      },
    })
    for await (const { event, data } of messages) {
      if (event === 'done') return
      const told = JSON.parse(data) as StoredEvent
      seen = told.seq
      yield told
    }
    signal?.throwIfAborted()
  } catch (error) {
    // It was there, and was deleted meanwhile.
    if (!(isKnown && error instanceof NotFoundError)) throw error
  } finally {
    signal?.removeEventListener('abort', onAbort)
    end.abort()
  }
}

/** Nothing is read before somebody reads. */
function toStream(events: AsyncGenerator<StoredEvent>, leave: () => void): EventStream {
  const stream = new ReadableStream<StoredEvent>(
    {
      async pull(controller) {
        const { value, done } = await events.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
  if (Symbol.asyncIterator in stream) return stream as EventStream
  return Object.assign(stream as ReadableStream<StoredEvent>, { [Symbol.asyncIterator]: () => iterate(stream) })
}

async function* iterate(stream: ReadableStream<StoredEvent>): AsyncGenerator<StoredEvent, void, void> {
  const reader = stream.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } finally {
    await reader.cancel().catch(() => {})
    reader.releaseLock()
  }
}

/** Some run changed. */
export interface RunChange {
  /** `null`: nobody knows which, so that everything has to be read anew. */
  readonly runId: string | null
  /** The run has ended, or is gone: people wait for this. */
  readonly isUrgent: boolean
}

/** Hints, until somebody has had enough. Whoever may not have them any more hears nothing. */
export function watchRuns(transport: Transport, listener: (change: RunChange) => void): () => void {
  const end = new AbortController()
  void tellChanges(transport, end.signal, listener).catch(() => {})
  return () => end.abort()
}

const ANY: RunChange = { runId: null, isUrgent: false }

async function tellChanges(transport: Transport, signal: AbortSignal, listener: (change: RunChange) => void) {
  const onConnected = (isAgain: boolean) => (isAgain ? listener(ANY) : undefined)
  for await (const { event, data } of messagesOf(transport, {
    path: '/events',
    headers: () => ({}),
    signal,
    onConnected,
  })) {
    if (signal.aborted) return
    if (event === 'reload') listener(ANY)
    else {
      const { id, status } = JSON.parse(data) as RunHint
      listener({ runId: id, isUrgent: status === null || isEnded(status) })
    }
  }
}
