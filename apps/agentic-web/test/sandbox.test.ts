import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBashTool } from '../src/sandbox'
import { sandboxOfTests, whereThereIsASandbox } from '../src/sandbox/nobody-sandbox'
import { Browser, deploy, type Deployment, isPiece, piecesIn } from './deployment'

describe(
  'bash in a chat',
  whereThereIsASandbox(() => {
    let deployment: Deployment & { end(): Promise<void> }
    let urls: readonly string[]

    beforeAll(async () => {
      deployment = await deploy()
      urls = [(await deployment.startApi()).url]
      if (sandboxOfTests !== null) await deployment.startWorker({}, { tools: [createBashTool(sandboxOfTests)] })
    })
    afterAll(() => deployment.end())

    /** Says it, agrees to it, and waits for what comes of it. */
    async function runs(browser: Browser, session: string, command: string) {
      const run = await begins(browser, session, command)
      return piecesIn(await browser.ended(run)).find(isPiece('tool-result'))
    }

    async function begins(browser: Browser, session: string, command: string): Promise<string> {
      const run = await browser.say(session, `/bash ${JSON.stringify({ command })}`)
      const { name } = await browser.until(run, isPiece('asked'))
      await browser.post(`/api/approvals/${run}/${encodeURIComponent(name)}`, { decision: 'approve' })
      return run
    }

    it('keeps the files of the session from one call to the next, and shows them to nobody else', async () => {
      const ada = await new Browser(...urls).be('ada')
      const session = await ada.newSession()
      const written = await runs(ada, session, 'mkdir notes; echo secret-of-ada > notes/a.txt')
      expect(written).toMatchObject({ isError: false, result: { exitCode: 0, written: ['notes/a.txt'] } })
      const read = await runs(ada, session, 'cat notes/a.txt; rm notes/a.txt; echo b > b.txt')
      expect(read).toMatchObject({
        result: { output: 'secret-of-ada\n', written: ['b.txt'], removed: ['notes/a.txt'] },
      })
      const { body } = await ada.get(`/api/sessions/${session}/files`)
      expect(body.files).toMatchObject([{ path: 'b.txt', size: 2 }])
      const grace = await new Browser(...urls).be('grace')
      const seen = await runs(grace, await grace.newSession(), "ls -A; find / -name 'b.txt' 2>/dev/null; echo looked")
      expect(seen).toMatchObject({ result: { output: 'looked\n' } })
    })

    it('finds none of the secrets of its worker', async () => {
      const ada = await new Browser(...urls).be('ada')
      const found = await runs(
        ada,
        await ada.newSession(),
        'env; cat /proc/*/environ; cat /proc/*/cmdline; echo looked',
      )
      expect(found).toMatchObject({ isError: false })
      const told = JSON.stringify(found)
      expect(told).toContain('looked')
      for (const name of ['SECRET_KEYS', 'DATABASE_URL', 'LINK_SECRET']) {
        expect(told).not.toContain(name)
        expect(told).not.toContain(deployment.env[name])
      }
    })

    it('ends with its run when that is stopped, and leaves nothing behind', async () => {
      const ada = await new Browser(...urls).be('ada')
      const session = await ada.newSession()
      const run = await begins(ada, session, 'echo x > half.txt; (setsid sleep 16180 &); sleep 16180')
      await expect.poll(() => running('sleep 16180')).toBe(2)
      await ada.post(`/api/runs/${run}/cancel`)
      expect((await ada.ended(run)).at(-1)).toMatchObject({ event: 'done', data: { status: 'cancelled' } })
      await expect.poll(() => running('sleep 16180')).toBe(0)
      expect((await ada.get(`/api/sessions/${session}/files`)).body.files).toEqual([])
    })
  }),
)

function running(command: string): number {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.filter((id) => commandOf(id) === command).length
}

function commandOf(id: string): string {
  try {
    return readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}
