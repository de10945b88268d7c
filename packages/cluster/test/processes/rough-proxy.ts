import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands between processes and Postgres, and does to their connections what networks do. */
export interface RoughProxy {
  through(url: string): string
  /** All connections break, and nobody gets a new one. */
  cut(): void
  /** What is sent arrives so much later. */
  delay(ms: number): void
  /** Connections stay open, and nothing that the server answers arrives. */
  deafen(): void
  /** The direction of the server ends, also that of new connections: what is sent to the server still arrives there. */
  halfClose(): void
  /** Resolves when all that was sent until now has arrived. */
  arrived(): Promise<void>
  /** Connections that nothing came through any more break, new ones are good. */
  heal(): void
  close(): Promise<void>
}

export async function startRoughProxy(url: string): Promise<RoughProxy> {
  const target = new URL(url)
  const open = new Set<Socket>()
  const clients = new Set<Socket>()
  let state: 'good' | 'cut' | 'deaf' | 'half closed' = 'good'
  let delayMs = 0

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (state === 'cut') {
      client.destroy()
      return
    }
    const upstream = connect({ port: Number(target.port), host: target.hostname, allowHalfOpen: true })
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => open.delete(socket))
    }
    clients.add(client)
    client.once('close', () => clients.delete(client))
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
    client.on('data', (chunk) => later(() => upstream.write(chunk)))
    client.on('end', () => later(() => upstream.end()))
    upstream.on('data', (chunk) => {
      if (state === 'good' && client.writable) later(() => client.write(chunk))
    })
    upstream.on('end', () => later(() => client.end()))
    if (state === 'half closed') client.end()
  })
  // All wait alike, so that nothing overtakes.
  const later = (send: () => void) => {
    if (delayMs === 0) send()
    else setTimeout(send, delayMs)
  }
  const drop = () => {
    for (const socket of open) socket.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    through(address) {
      const changed = new URL(address)
      changed.hostname = '127.0.0.1'
      changed.port = String(port)
      return changed.href
    },
    cut() {
      state = 'cut'
      drop()
    },
    delay(ms) {
      delayMs = ms
    },
    deafen() {
      state = 'deaf'
    },
    halfClose() {
      state = 'half closed'
      for (const client of clients) client.end()
    },
    arrived: () => new Promise((resolve) => later(resolve)),
    heal() {
      // A message that lost its middle is none: such a connection cannot go on.
      if (state === 'deaf' || state === 'half closed' || delayMs > 0) drop()
      state = 'good'
      delayMs = 0
    },
    async close() {
      drop()
      server.close()
      await once(server, 'close')
    },
  }
}
