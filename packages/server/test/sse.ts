import { createParser } from 'eventsource-parser'
import type { DurablyHandler } from '../src'
import { toRequest } from './api'

export interface Message {
  readonly id?: string | undefined
  readonly event?: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: of any type.
  readonly data: any
}

/** Reads messages of a stream as they come. */
export class Follower {
  readonly messages: Message[] = []
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  readonly #parser = createParser({
    onEvent: ({ id, event, data }) => this.messages.push({ id, event, data: JSON.parse(data) }),
    onComment: () => {
      this.comments += 1
    },
  })
  comments = 0

  constructor(body: ReadableStream<Uint8Array> | null) {
    if (body === null) throw new Error('There is no stream.')
    this.#reader = body.getReader()
  }

  /** `false` at the end. */
  async read(): Promise<boolean> {
    const { done, value } = await this.#reader.read()
    if (!done) this.#parser.feed(this.#decoder.decode(value, { stream: true }))
    return !done
  }

  async until(isEnough: (messages: readonly Message[]) => boolean): Promise<readonly Message[]> {
    while (!isEnough(this.messages)) if (!(await this.read())) break
    return this.messages
  }

  toEnd(): Promise<readonly Message[]> {
    return this.until(() => false)
  }

  leave(): Promise<void> {
    return this.#reader.cancel()
  }
}

export async function followRun(handler: DurablyHandler, id: string, lastSeen?: string): Promise<Follower> {
  const headers = lastSeen === undefined ? {} : { 'last-event-id': lastSeen }
  const response = await handler(toRequest(`GET /runs/${id}/events`, { headers }))
  if (response.status !== 200) throw new Error(await response.text())
  return new Follower(response.body)
}
