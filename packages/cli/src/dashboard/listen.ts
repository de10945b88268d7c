import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Refusal } from '../refusal'

/** Where it is, unless somebody else is there already. */
const USUAL_PORT = 4777

export interface Site {
  readonly url: string
  close(): Promise<void>
}

export interface Where {
  readonly host: string
  readonly port: number | undefined
}

/** Serves a handler by `node:http`; on the usual port, or on any that is free unless one was asked for. */
export async function listen(handler: (request: Request) => Promise<Response>, where: Where): Promise<Site> {
  const server = createServer(getRequestListener(handler, { overrideGlobalObjects: false }))
  const { host } = where
  try {
    await bind(server, host, where.port ?? USUAL_PORT)
  } catch (error) {
    if (where.port !== undefined || Object(error).code !== 'EADDRINUSE') throw explained(error, where)
    await bind(server, host, 0)
  }
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function bind(server: Server, host: string, port: number): Promise<void> {
  const listening = once(server, 'listening')
  server.listen(port, host)
  await listening
}

function explained(error: unknown, { host, port }: Where): unknown {
  const { code } = Object(error) as { readonly code?: unknown }
  if (code === 'EADDRINUSE') return new Refusal(`Port ${port} of ${host} is taken. Choose another --port, or none.`)
  if (code === 'EACCES') return new Refusal(`Port ${port} may not be used by this user. Choose a --port from 1024.`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return new Refusal(`${host} is no address of this machine.`)
  return error
}
