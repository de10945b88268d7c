import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { attemptsOn } from './attempts'
import { createBashTool } from './bash-tool'
import { filesOf, openTestSandbox, USER_OF_TESTS, whereThereIsASandbox } from './nobody-sandbox'
import { CANARY, plantHost, SMALL_LIMITS } from './targets'

const host = await plantHost()
const sandbox = await openTestSandbox({ limits: { ...SMALL_LIMITS, seconds: 30 } })

afterAll(() => host.end())

async function callBash(command: string, files = new Map<string, string>()): Promise<string> {
  if (sandbox === null) throw new Error('There is no sandbox.')
  const tool = createBashTool(sandbox)
  const context = { runId: 'run', sessionId: 'session', userId: 'user', idempotencyKey: 'key', files: filesOf(files) }
  const told = await tool.execute({ command } as never, { ...context, signal: new AbortController().signal } as never)
  return JSON.stringify(told)
}

const ATTEMPTS = attemptsOn(host.targets)

describe(
  'an attempt to get out of the sandbox',
  whereThereIsASandbox(() => {
    it('is one of 64', () => {
      expect(new Set(ATTEMPTS.map(({ name }) => name)).size).toBe(64)
    })

    it('finds what is planted in an environment where there is no sandbox', async () => {
      const { command, contained } = ATTEMPTS.find(({ name }) => name === 'the environment of every process') ?? {}
      const options = { ...USER_OF_TESTS, maxBuffer: Number.POSITIVE_INFINITY }
      const { stdout } = await promisify(execFile)('/bin/bash', ['-c', command ?? ''], options)
      // What else is in there is for no log.
      expect(stdout.includes(CANARY)).toBe(true)
      expect(contained?.test(JSON.stringify({ output: stdout }))).toBe(false)
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
      expect(host.connections()).toBe(0)
    })
  }),
)
