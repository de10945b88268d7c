import { type IncomingMessage, request as ask, type ServerResponse } from 'node:http'

const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']
const MOST_BODY_BYTES = 1024 * 1024

/** Hands requests to several instances in turn; one that does not answer is passed over. */
export function createProxy(urls: readonly string[]) {
  let next = 0
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request)
    if (body === null) return void response.writeHead(413).end()
    const first = next++
    for (let tries = 0; tries < urls.length; tries++) {
      const url = urls[(first + tries) % urls.length] ?? ''
      if (await handOver(url, { request, response, body })) return
    }
    response.writeHead(502, { 'content-type': 'application/problem+json', 'retry-after': '1' })
    response.end(JSON.stringify({ code: 'UNAVAILABLE', status: 502, detail: 'No instance answers at the moment.' }))
  }
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: Buffer
}

/** Gives false where nothing was sent, so that another instance can be asked. */
function handOver(url: string, { request, response, body }: Exchange): Promise<boolean> {
  return new Promise((resolve) => {
    const { method, url: path } = request
    let isConnected = false
    // As it came: resolved against the instance, a path may lead to another server.
    const asked = ask(url, { method, path, headers: headersFor(request, body), agent: false })
    // A browser that goes away takes its request along; a stream that is never read would go on for ever.
    response.once('close', () => asked.destroy())
    asked.once('socket', (socket) => socket.once('connect', () => (isConnected = true)))
    asked.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, withoutHops(answer.headers))
      response.flushHeaders()
      answer.pipe(response)
      // Half of an answer must not look like a whole one.
      answer.once('error', () => response.destroy())
      answer.once('close', () => answer.complete || response.destroy())
      resolve(true)
    })
    asked.once('error', () => {
      if (!isConnected) return resolve(false)
      response.destroy()
      resolve(true)
    })
    asked.end(body)
  })
}

function headersFor({ headers, socket }: IncomingMessage, body: Buffer) {
  const address = socket.remoteAddress ?? ''
  const before = headers['x-forwarded-for']
  return {
    ...withoutHops(headers),
    'x-forwarded-for': before === undefined ? address : `${before}, ${address}`,
    ...(body.length > 0 && { 'content-length': String(body.length) }),
  }
}

function withoutHops(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)))
}

/** Whole, so that it can be sent once more; `null` when it is too much. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > MOST_BODY_BYTES) return null
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
