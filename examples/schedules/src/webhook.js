import { createServer } from 'node:http'

/**
 * Takes `POST /webhook` of a shop. Who sends it twice, because no answer came, has sent one message, and is told so
 * (`deduplicated: true`): the id of the event is the dedupe key.
 *
 * @param {import('@coji/durably').Durably} durably
 * @param {number} port
 * @returns {Promise<{ port: number, close(): void }>}
 */
export async function listen(durably, port) {
  const server = createServer(async (request, response) => {
    try {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      const { id, type, ...payload } = JSON.parse(Buffer.concat(chunks).toString())
      const published = await durably.publish({ type, payload, dedupeKey: `shop ${id}` })
      response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify(published))
    } catch (error) {
      response.writeHead(400).end(String(error))
    }
  })
  await new Promise((listening) => server.listen(port, '127.0.0.1', () => listening(null)))
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { port: address.port, close: () => void server.close() }
}
