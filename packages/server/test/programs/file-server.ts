import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDurably } from '@coji/durably-core'
import { withLogPersistence } from '@coji/durably-plugins'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import { getRequestListener } from '@hono/node-server'
import { createDurablyHandler, type DurablyHandler } from '../../src'

/** What a program that serves a file is started with. */
export interface FileServerConfig {
  readonly file: string
  /** 0: any. */
  readonly port: number
}

export function readConfig<T extends FileServerConfig>(): T {
  return JSON.parse(process.argv[2] ?? '{}') as T
}

/** Serves the runs of a file, of which others execute them, until it is killed. Says at which port. */
export function serveFile(
  { file, port }: FileServerConfig,
  mount: (handler: DurablyHandler) => DurablyHandler = (handler) => handler,
): void {
  const storage = createKyselyStorage({ dialect: betterSqlite3(file) })
  const durably = createDurably({ storage, pollingInterval: 50, logger: null }).use(withLogPersistence())
  const handler = mount(createDurablyHandler(durably, { allowAnonymous: true }))
  const server = createServer(getRequestListener(handler))
  const listen = () => server.listen(port, '127.0.0.1')
  // While nobody listened there, a connection of somebody else's may have got the port.
  server.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error
    setTimeout(listen, 50)
  })
  server.once('listening', () => {
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
  })
  listen()
}
