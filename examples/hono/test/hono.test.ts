import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, type TestContext } from 'vitest'
import { describedClient, expectAllDescribed } from '../../../test/mounted-handler'

const START = fileURLToPath(new URL('../src/start.js', import.meta.url))
const [ADA, CHARLES] = ['ada:analytical', 'charles:difference']

interface Service {
  readonly child: ChildProcess
  readonly url: string
}

async function start({ onTestFinished }: TestContext, database: string): Promise<Service> {
  const child = spawn(process.execPath, [START, '--database', database, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await closed
  })
  const [printed] = await Promise.race([once(child.stdout, 'data'), closed])
  const [, url] = /^(http:\S+)\/admin/.exec(String(printed)) ?? []
  if (url === undefined) throw new Error(`It has printed no address: ${printed}`)
  return { child, url }
}

const as = (login: string) => ({ authorization: `Basic ${btoa(login)}` })

async function place(url: string, item: string, price: number): Promise<string> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': item }
  const answer = await fetch(`${url}/orders`, { method: 'POST', headers, body: JSON.stringify({ item, price }) })
  return ((await answer.json()) as { id: string }).id
}

it('takes orders, shows them to those who may see them, and goes on after a kill', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'durably-hono-'))
  context.onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const database = join(folder, 'app.db')

  const first = await start(context, database)
  const tea = await place(first.url, 'tea', 12)
  const piano = await place(first.url, 'piano', 9000)
  const ada = (url: string) => describedClient(`${url}/api/durably`, as(ADA))
  expect(await ada(first.url).wait(tea)).toMatchObject({ output: 'shipped' })
  for await (const { type } of ada(first.url).subscribe(piano)) if (type === 'run:suspend') break

  expect((await fetch(`${first.url}/admin/durably`)).status).toBe(401)
  expect((await fetch(`${first.url}/admin/durably/api/runs`, { headers: as('ada:wrong') })).status).toBe(401)
  const page = await fetch(`${first.url}/admin/durably`, { headers: as(CHARLES) })
  expect(await page.text()).toContain('content="/admin/durably/api"')
  const charles = describedClient(`${first.url}/admin/durably/api`, as(CHARLES))
  expect(await charles.me()).toMatchObject({ actor: 'charles', actions: ['read'] })
  await expect(charles.signal(piano, 'approval', { approved: true })).rejects.toThrow('may not')

  first.child.kill('SIGKILL')
  await once(first.child, 'close')
  const second = await start(context, database)
  expect(await place(second.url, 'piano', 9000)).toBe(piano)
  await ada(second.url).signal(piano, 'approval', { approved: true })
  expect(await ada(second.url).wait(piano)).toMatchObject({ output: 'shipped' })
  expect(await (await fetch(`${second.url}/orders/${piano}`)).json()).toEqual({
    status: 'completed',
    output: 'shipped',
  })
  expectAllDescribed()

  second.child.kill('SIGTERM')
  expect(await once(second.child, 'close')).toEqual([0, null])
})
