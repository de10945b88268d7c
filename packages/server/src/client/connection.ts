import { createParser } from 'eventsource-parser'
import { InvalidOptionError } from '@coji/durably-core'
import { isPassingStatus, notOurs, toError } from './errors'
import { pause } from './pause'
import type { Transport } from './transport'

/** A message of a stream. */
export interface Message {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string
}

interface ConnectionOptions {
  readonly path: string
  /** Where to go on, at each connection. */
  readonly headers: () => Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** The stream is open, for the first time or again. */
  readonly onConnected?: (isAgain: boolean) => void
}

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000
/** The server says something every 15 s; what has been silent for so long is dead. */
const SILENCE_MS = 60_000
/** More than the longest event. */
const MAX_BUFFER = 16 * 1024 * 1024

/** The messages of a stream, for ever: whenever it ends or is lost, it is opened anew. Ends with the signal. */
export async function* messagesOf(
  transport: Transport,
  options: ConnectionOptions,
): AsyncGenerator<Message, void, void> {
  const { signal, onConnected } = options
  for (let failures = 0, isAgain = false; !signal.aborted; ) {
    const connection = new AbortController()
    const onAbort = () => connection.abort()
    signal.addEventListener('abort', onAbort)
    try {
      const response = await opened(transport, options, connection.signal)
      if (response !== null) {
        onConnected?.(isAgain)
        isAgain = true
        for await (const message of read(response, connection)) {
          failures = 0
          yield message
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      connection.abort()
    }
    await pause(pauseMsAfter(failures++), signal)
  }
}

/** `null` where it is worth while to try again; who is refused for good is told. */
async function opened(
  transport: Transport,
  { path, headers, signal }: ConnectionOptions,
  connection: AbortSignal,
): Promise<Response | null> {
  const response = await transport.open(path, headers(), connection).catch((error: unknown) => {
    if (error instanceof InvalidOptionError) throw error
    return null
  })
  if (response === null || isStream(response)) return response
  if (isPassingStatus(response.status)) {
    await response.body?.cancel().catch(() => {})
    return null
  }
  const error = response.ok ? notOurs(response, 'a stream') : await toError(response)
  await response.body?.cancel().catch(() => {})
  if (signal.aborted) return null
  throw error
}

function isStream({ ok, headers }: Response): boolean {
  return ok && headers.get('content-type')?.startsWith('text/event-stream') === true
}

/** Whatever cuts it off is its end. */
async function* read({ body }: Response, connection: AbortController): AsyncGenerator<Message, void, void> {
  const reader = body?.getReader()
  if (reader === undefined) return
  const messages: Message[] = []
  const decoder = new TextDecoder()
  const parser = createParser({
    onEvent: ({ id, event, data }) => messages.push({ id, event, data }),
    maxBufferSize: MAX_BUFFER,
  })
  // A pending read ends then.
  const leave = () => void reader.cancel().catch(() => {})
  connection.signal.addEventListener('abort', leave)
  if (connection.signal.aborted) leave()
  for (;;) {
    const timer = setTimeout(() => connection.abort(), SILENCE_MS)
    const part = await reader.read().catch(() => null)
    clearTimeout(timer)
    if (part === null || part.done) return
    parser.feed(decoder.decode(part.value, { stream: true }))
    yield* messages.splice(0)
  }
}

/** With jitter, so that not all readers of a server come back at once. */
function pauseMsAfter(failures: number): number {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS)
  return longest * (0.5 + Math.random() / 2)
}
