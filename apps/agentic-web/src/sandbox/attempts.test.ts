import { afterAll, describe, expect, it } from 'vitest'
import { attemptsOn } from './attempts'
import { createBashTool } from './bash-tool'
import { filesOf, openTestSandbox, whereThereIsASandbox } from './nobody-sandbox'
import { CANARY, plantHost, SMALL_LIMITS } from './targets'

const host = await plantHost()
const sandbox = await openTestSandbox({ limits: SMALL_LIMITS })

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
