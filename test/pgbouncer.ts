import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, it } from 'vitest'

/** A real PgBouncer that lends the sessions of a server by transaction. */
export interface PgBouncer {
  /** The address of a database, through it. */
  through(url: string): string
  end(): Promise<void>
}

/** Beside the PATH of the tests: where systems put programs that are for the administrator. */
const FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin']

/** Where it is installed, if it is: the tests install nothing on the machine. */
const PGBOUNCER = [...(process.env['PATH'] ?? '').split(delimiter), ...FOLDERS]
  .map((folder) => join(folder, 'pgbouncer'))
  .find(isProgram)

/** Tests that need one: where there is none they are one skipped test, whose reason is in `skipped.json`. */
export function describeWithPgBouncer(name: string, tests: () => void): void {
  const isThere = PGBOUNCER !== undefined
  describe(name, isThere ? tests : () => it.runIf(isThere)('where there is a PgBouncer', () => {}))
}

interface PgBouncerOptions {
  /** What all clients of a database share. */
  readonly sessions: number
  /** Of `pgbouncer.ini`. */
  readonly settings?: Readonly<Record<string, string>>
}

/** In front of one server. */
export async function startPgBouncer(
  serverUrl: string,
  { sessions, settings = {} }: PgBouncerOptions,
): Promise<PgBouncer> {
  if (PGBOUNCER === undefined) throw new Error('There is no PgBouncer on this machine.')
  const folder = mkdtempSync(join(tmpdir(), 'durably-pgbouncer-'))
  chmodSync(folder, 0o755)
  const port = await freePort()
  const config = join(folder, 'pgbouncer.ini')
  writeFileSync(config, configOf(new URL(serverUrl), { port, sessions, settings }))
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  // Its keeper ends it when the tests are gone, in whatever way.
  const script = '"$0" "$@" & child=$!; cat > /dev/null; kill -INT $child; wait $child'
  const keeper = spawn('sh', ['-c', script, PGBOUNCER, '-q', ...user, config], {
    cwd: folder,
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  await untilUp(port, keeper)
  keeper.unref()
  return {
    through(url) {
      const address = new URL(url)
      address.host = `127.0.0.1:${port}`
      return address.href
    },
    async end() {
      keeper.ref()
      const closed = once(keeper, 'close')
      keeper.stdin?.end()
      await closed
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function configOf(
  { hostname, port: serverPort, username, password }: URL,
  own: { port: number } & Required<PgBouncerOptions>,
) {
  const secret = password === '' ? '' : ` password='${decodeURIComponent(password)}'`
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: own.port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: own.sessions,
    max_client_conn: 500,
    log_connections: 0,
    log_disconnections: 0,
    log_pooler_errors: 0,
    ...own.settings,
  }
  return `[databases]
* = host=${hostname} port=${serverPort || 5432} user=${decodeURIComponent(username)}${secret}
[pgbouncer]
${Object.entries(settings)
  .map(([name, value]) => `${name} = ${value}`)
  .join('\n')}
`
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

async function untilUp(port: number, keeper: ChildProcess): Promise<void> {
  while (keeper.exitCode === null) {
    const socket = connect(port, '127.0.0.1')
    const isUp = await once(socket, 'connect').catch(() => null)
    socket.destroy()
    if (isUp !== null) return
    await pause(20)
  }
  throw new Error('PgBouncer does not start.')
}
