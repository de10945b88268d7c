import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '../../../test/bundle-programs'

/** Below this package, so that the bundles find its driver. */
const CACHE = fileURLToPath(new URL('../node_modules/.cache/durably-server-programs', import.meta.url))

/** A server that is a process of its own. */
export interface KillableServer {
  /** Stays the same. */
  readonly url: string
  /** With SIGKILL; when this is over it is gone. */
  kill(): Promise<void>
  /** At the same port, with the same file. */
  startAgain(): Promise<void>
  close(): Promise<void>
}

/** Starts a program that serves the file of its configuration, as `serveFile` does, and says at which port. */
export async function startServer(program: string, config: object): Promise<KillableServer> {
  const folder = `${CACHE}/${process.pid}-${crypto.randomUUID()}`
  await bundlePrograms({ program }, folder)
  const start = (port: number) =>
    spawn(process.execPath, [`${folder}/program.mjs`, JSON.stringify({ ...config, port })], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  let child = start(0)
  const port = await portOf(child)
  const kill = async () => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    expectKilled(await ended)
  }
  return {
    url: `http://127.0.0.1:${port}`,
    kill,
    async startAgain() {
      child = start(port)
      await portOf(child)
    },
    async close() {
      if (child.exitCode === null && child.signalCode === null) await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function expectKilled([, signal]: readonly unknown[]): void {
  if (signal !== 'SIGKILL') throw new Error('The server was gone before it was killed.')
}

async function portOf({ stdout }: ChildProcess): Promise<number> {
  if (stdout === null) throw new Error('Nobody hears what the server says.')
  for await (const line of createInterface({ input: stdout })) return (JSON.parse(line) as { port: number }).port
  throw new Error('The server ended before it served anything.')
}
