import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type ListenOptions, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { attemptsOn } from './attempts'
import { createBashTool } from './bash-tool'
import type { Limits } from './inside'
import { filesOf, openTestSandbox, sandboxOfTests, whereThereIsASandbox } from './nobody-sandbox'

const CANARY = 'canary-5f0c7e21'
const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
const secretFile = join(folder, 'secret.txt')
const socketPath = join(folder, 'host.sock')
const abstractSocket = `durably-${process.pid}`
/** Small, so that what runs into one does so soon. */
const LIMITS: Partial<Limits> = { seconds: 8, cpuSeconds: 4, memoryBytes: 128 * 1024 * 1024, processes: 24 }

const PLANTED = { AGENT_SECRET: CANARY, BASH_ENV: secretFile }
let connections = 0
const servers: Server[] = []
const otherSession = new AbortController()

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
await listen({ path: socketPath })
await listen({ path: `\0${abstractSocket}` })
writeFileSync(secretFile, `${CANARY}\necho ${CANARY}\n`, { mode: 0o644 })
Object.assign(process.env, PLANTED)

beforeAll(() => {
  const files = [{ path: 'other-session.txt', content: Buffer.from(CANARY) }]
  sandboxOfTests?.run({ command: 'sleep 100', files, signal: otherSession.signal }).catch(() => {})
})

afterAll(() => {
  otherSession.abort()
  for (const server of servers) server.close()
  for (const name of Object.keys(PLANTED)) delete process.env[name]
  rmSync(folder, { recursive: true, force: true })
})

const sandbox = await openTestSandbox({ limits: LIMITS })

async function callBash(command: string, files = new Map<string, string>()): Promise<string> {
  if (sandbox === null) throw new Error('There is no sandbox.')
  const tool = createBashTool(sandbox)
  const context = { runId: 'run', sessionId: 'session', userId: 'user', idempotencyKey: 'key', files: filesOf(files) }
  const told = await tool.execute({ command } as never, { ...context, signal: new AbortController().signal } as never)
  return JSON.stringify(told)
}

const ATTEMPTS = attemptsOn({ secretFile, port, socketPath, abstractSocket, workerId: process.pid })

describe(
  'an attempt to get out of the sandbox',
  whereThereIsASandbox(() => {
    it('is one of 64', () => {
      expect(new Set(ATTEMPTS.map(({ name }) => name)).size).toBe(64)
    })

    describe.concurrent('reaches no further than the sandbox:', () => {
      it.for(ATTEMPTS)('$name', async ({ command, contained }, { expect }) => {
        const files = new Map([['own.txt', 'mine']])
        const told = await callBash(command, files)
        expect(told).toMatch(contained)
        expect(told).not.toContain(CANARY)
        expect([...files.values()].join()).not.toContain(CANARY)
      })
    })

    it('has reached no server of the host', () => {
      expect(connections).toBe(0)
    })
  }),
)
