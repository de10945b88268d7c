import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/**
 * The network between one member and the database, to be cut and mended.
 * @param {string} url
 */
export async function startCable(url) {
  const target = new URL(url)
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set()
  let isCut = false
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => sockets.delete(socket))
    }
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
    // Nothing comes through, and nobody is told.
    client.on('data', (chunk) => void (isCut || upstream.write(chunk)))
    upstream.on('data', (chunk) => void (isCut || client.write(chunk)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const near = new URL(url)
  near.port = String(typeof address === 'object' ? address?.port : '')
  near.hostname = '127.0.0.1'
  return {
    url: near.href,
    isCut: () => isCut,
    cut() {
      isCut = true
    },
    mend() {
      isCut = false
      for (const socket of sockets) socket.destroy()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
