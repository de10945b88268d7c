import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type ListenOptions, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Targets } from './attempts'
import type { Limits } from './inside'
import { sandboxOfTests, USER_OF_TESTS } from './nobody-sandbox'

/** What nothing that comes out of a sandbox may have in it. */
export const CANARY = 'canary-5f0c7e21'

/** Small, so that what runs into one does so soon. */
export const SMALL_LIMITS: Partial<Limits> = {
  seconds: 8,
  cpuSeconds: 4,
  memoryBytes: 128 * 1024 * 1024,
  processes: 24,
}

/** A host that is worth an attempt, for tests: the canary is in a file, in environments, at servers and in another session. */
export interface PlantedHost {
  readonly targets: Targets
  /** How often one of its servers was reached. */
  connections(): number
  end(): void
}

export async function plantHost(): Promise<PlantedHost> {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
  const secretFile = join(folder, 'secret.txt')
  const socketPath = join(folder, 'host.sock')
  let connections = 0
  const servers: Server[] = []
  async function listen(address: ListenOptions): Promise<Server> {
    const server = createServer((socket) => {
      connections++
      socket.end(CANARY)
    })
    servers.push(server)
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(address, resolve))
    return server
  }
  const { port } = (await listen({ port: 0, host: '127.0.0.1' })).address() as AddressInfo
  const abstractSocket = `durably-${process.pid}-${port}`
  await listen({ path: socketPath })
  await listen({ path: `\0${abstractSocket}` })
  writeFileSync(secretFile, `${CANARY}\necho ${CANARY}\n`, { mode: 0o644 })
  const planted = { AGENT_SECRET: CANARY, BASH_ENV: secretFile }
  Object.assign(process.env, planted)
  const endProcess = plantProcess({ AGENT_SECRET: CANARY })
  const otherSession = new AbortController()
  void keepOtherSession(otherSession.signal)
  return {
    targets: { secretFile, port, socketPath, abstractSocket, workerId: process.pid },
    connections: () => connections,
    end() {
      otherSession.abort()
      endProcess()
      for (const server of servers) server.close()
      for (const name of Object.keys(planted)) delete process.env[name]
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * A process of whoever the sandbox runs as, with these variables from its start, which is when the system notes them, and with
 * their values as arguments. It ends with this one, or when what is returned is called.
 */
export function plantProcess(env: Readonly<Record<string, string>>): () => void {
  const child = spawn('/bin/bash', ['--norc', '-c', 'read', ...Object.values(env)], {
    env,
    stdio: ['pipe', 'ignore', 'ignore'],
    ...USER_OF_TESTS,
  })
  // A machine without bash has no sandbox either.
  child.on('error', () => {})
  return () => void child.kill('SIGKILL')
}

/** Its call is ended when its time is over, and another one begins: there is always one. */
async function keepOtherSession(signal: AbortSignal): Promise<void> {
  const files = [{ path: 'other-session.txt', content: Buffer.from(CANARY) }]
  while (sandboxOfTests !== null && !signal.aborted) {
    await sandboxOfTests.run({ command: 'sleep 100', files, signal }).catch(() => {})
  }
}
