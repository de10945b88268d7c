import { type AddressInfo, createServer } from 'node:net'

const LAST_PORT = 65_535

/** A port of this machine that nobody listens on. */
export function freePort(): Promise<number> {
  return listenOn(0)
}

/** The first such port from here on. */
export async function freePortFrom(port: number): Promise<number> {
  for (let each = port; each < LAST_PORT; each++) {
    const found = await listenOn(each).catch(() => null)
    if (found !== null) return found
  }
  throw new Error(`No port from ${port} on is free.`)
}

function listenOn(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const { port: found } = server.address() as AddressInfo
      server.close(() => resolve(found))
    })
  })
}
