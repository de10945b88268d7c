import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Answered } from './deployment'

/** What a request to the model was, and how it is answered. */
export interface Asked {
  readonly body: Answered
  readonly authorization: string | undefined
  /** One chunk of the stream. */
  say(delta: Answered, finishReason?: string): void
  /** Something that is no chunk. */
  write(text: string): void
  /** The stream ends as it should. */
  done(): void
  /** The connection breaks. */
  cut(): void
  /** The stream ends, before the model has finished. */
  end(): void
  refuse(status: number, headers?: Record<string, string>, why?: string): void
}

type Answer = (asked: Asked, count: number) => void | Promise<void>

/** Ends with the test. */
export async function startModelServer(answer: Answer) {
  const server = await openModelServer(answer)
  onTestFinished(() => server.close())
  return server
}

/** A server that speaks the streaming protocol of OpenAI's chat completions. `answer` is called for each request. */
export async function openModelServer(answer: Answer) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const one = talk(response, JSON.parse(text), request.headers.authorization)
    asked.push(one)
    await answer(one, asked.length)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    asked,
    host: `127.0.0.1:${port}`,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function talk(response: ServerResponse, body: Answered, authorization: string | undefined): Asked {
  const begin = () => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
  }
  const write = (text: string) => {
    begin()
    response.write(text)
  }
  return {
    body,
    authorization,
    write,
    say(delta, finishReason) {
      const choice = { index: 0, delta, finish_reason: finishReason ?? null }
      const chunk = { id: 'chat', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] }
      write(`data: ${JSON.stringify(chunk)}\n\n`)
    },
    done() {
      write('data: [DONE]\n\n')
      response.end()
    },
    cut() {
      begin()
      response.flushHeaders()
      setImmediate(() => response.destroy())
    },
    end() {
      begin()
      response.end()
    },
    refuse(status, headers = {}, why = 'no') {
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify({ error: { message: why } }))
    },
  }
}

/** Says it word by word, and ends well. */
export function sayAll(asked: Asked, text: string): void {
  for (const word of text.split(/(?<= )/)) asked.say({ content: word })
  asked.say({}, 'stop')
  asked.done()
}

export function call(asked: Asked, name: string, given: string): void {
  const [half, rest] = [given.slice(0, 5), given.slice(5)]
  asked.say({ tool_calls: [{ index: 0, id: 'same-id', type: 'function', function: { name, arguments: half } }] })
  asked.say({ tool_calls: [{ index: 0, function: { arguments: rest } }] })
  asked.say({}, 'tool_calls')
  asked.done()
}
