import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type PostgresSettings = Readonly<Record<string, string | number>>

/** The process that keeps a server, and where it takes orders. */
export interface Keeper {
  readonly url: string
  /** Resolves when the server is stopped and its files are gone. */
  end(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('./postgres-keeper.mjs', import.meta.url))

const ALWAYS: PostgresSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 200,
  shared_buffers: '64MB',
  log_lock_waits: 'on',
  // As little like the zone of durably's instants as can be: who depends on the zone of a session is found out.
  timezone: 'Asia/Kathmandu',
}

export async function spawnKeeper(settings: PostgresSettings): Promise<Keeper> {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify({ ...ALWAYS, ...settings })], {
    // Ctrl-C ends the tests; the keeper sees that by the end of its input and cleans up in peace.
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  unreference(child)
  return {
    url: `http://127.0.0.1:${line.toString().trim()}`,
    async end() {
      const closed = child.exitCode === null ? once(child, 'close') : Promise.resolve()
      child.ref()
      child.stdin.end()
      await closed
    },
  }
}

/** A server that nobody ended must not keep its process from ending, which ends the server. */
function unreference(child: ChildProcess): void {
  child.unref()
  for (const pipe of [child.stdin, child.stdout]) (pipe as { unref?(): void } | null)?.unref?.()
}

export interface KeeperAnswer {
  readonly url?: string
  readonly log?: string
  readonly error?: string
}

export async function askKeeper(
  keeperUrl: string,
  command: 'start' | 'fast' | 'immediate' | 'log',
): Promise<KeeperAnswer> {
  const response = await fetch(`${keeperUrl}/${command}`)
  const answer = (await response.json()) as KeeperAnswer
  if (answer.error !== undefined) throw new Error(`No Postgres for the tests: ${answer.error}`)
  return answer
}
