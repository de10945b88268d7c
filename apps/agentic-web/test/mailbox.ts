import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Somebody whom the agent writes to, and who does not answer at once. */
export async function startMailbox() {
  const got: (string | undefined)[] = []
  const open: ServerResponse[] = []
  const server = createServer((request, response) => {
    got.push(request.headers['idempotency-key'] as string | undefined)
    open.push(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    got,
    host: `127.0.0.1:${port}`,
    answer: () => void open.splice(0).map((response) => response.end()),
    end() {
      server.close()
      server.closeAllConnections()
    },
  }
}
