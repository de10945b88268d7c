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
  let state: 'good' | 'cut' | 'deaf' = 'good'
  let delayMs = 0

  const server = createServer((client) => {
    if (state === 'cut') {
      client.destroy()
      return
    }
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => open.delete(socket))
    }
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
    client.on('data', (chunk) => later(() => upstream.write(chunk)))
    upstream.on('data', (chunk) => {
      if (state !== 'deaf') later(() => client.write(chunk))
    })
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
    halfClose() {
      state = 'deaf'
    },
    arrived: () => new Promise((resolve) => later(resolve)),
    heal() {
      // A message that lost its middle is none: such a connection cannot go on.
      if (state === 'deaf' || delayMs > 0) drop()
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
