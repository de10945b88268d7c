import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { paced } from '../../../test/pace'
import { createDatabase } from '../../../test/postgres'

const START = fileURLToPath(new URL('../start.js', import.meta.url))
const STEPS = ['reserve', 'charge', 'pack', 'ship']

interface Shop {
  readonly child: ChildProcess
  text(): string
  complaints(): string
  /** The first match of what it printed. */
  printed(pattern: RegExp): Promise<readonly string[]>
  end(): Promise<number | null>
}

function startShop(env: NodeJS.ProcessEnv): Shop {
  const child = spawn(process.execPath, [START], { env: { ...process.env, PORT: '0', STEP_MS: '50', ...env } })
  let text = ''
  let complaints = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    complaints += more
  })
  const closed = once(child, 'close')
  const end = async () => {
    child.kill('SIGTERM')
    const [code] = (await closed) as [number | null]
    return code
  }
  onTestFinished(async () => void (await end()))
  return {
    child,
    text: () => text,
    complaints: () => complaints,
    end,
    async printed(pattern) {
      await expect.poll(() => text, { interval: 5, message: complaints }).toMatch(pattern)
      return pattern.exec(text) ?? []
    },
  }
}

const post = async (url: string, body: string) => (await (await fetch(url, { method: 'POST', body })).text()).trim()

it('orders are done to their end although workers are killed, and no step twice that was done', async () => {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  // What is ordered comes faster than it is done, so that whoever is killed is at work.
  const shop = startShop({ DATABASE_URL: database.url, STEP_MS: String(paced(400)) })
  const [, url] = await shop.printed(/(http:\S+) is process/)
  const pids = await Promise.all(
    [1, 2, 3].map(async (n) => Number((await shop.printed(new RegExp(`worker-${n} is process (\\d+)`)))[1])),
  )
  const items: string[] = []
  const ids: string[] = []
  const order = async () => {
    const item = `item-${items.length}.`
    items.push(item)
    ids.push(await post(`${url}orders`, item))
  }
  while (items.length < 20) await order()
  await shop.printed(/worker-1 {2}\S+ {2}pack/)
  process.kill(pids[0] ?? 0, 'SIGKILL')
  // However long the next one takes to start, there is something to do for it.
  const ordered = async () => {
    await order()
    return shop.text()
  }
  await expect.poll(ordered, { interval: 200 }).toMatch(/worker-4 {2}\S+ {2}reserve/)
  process.kill(pids[1] ?? 0, 'SIGKILL')

  for (const [n, id] of ids.entries()) {
    const events = (await (await fetch(`${url}orders/${id}`)).text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.at(-1)).toMatchObject({ type: 'run:complete', output: `${items[n]} is on its way` })
    expect(events.filter(({ type }) => type === 'step:complete').map(({ stepName }) => stepName)).toEqual(STEPS)
  }
  expect(await (await fetch(url ?? '')).json()).toMatchObject({ completed: items.length, failed: 0, pending: 0 })

  const begun = items.flatMap((item) =>
    STEPS.map(
      (step) =>
        shop
          .text()
          .split('\n')
          .filter((line) => line.endsWith(`  ${item}  ${step}`)).length,
    ),
  )
  expect(begun).toHaveLength(items.length * STEPS.length)
  expect(Math.min(...begun)).toBe(1)
  // Two bodies at most were cut off in each worker.
  const again = begun.reduce((sum, times) => sum + times - 1, 0)
  expect(again).toBeGreaterThan(0)
  expect(again).toBeLessThanOrEqual(4)
  expect(shop.text()).toContain('worker-1 is dead (SIGKILL)')
  expect(shop.text()).toContain('worker-2 is dead (SIGKILL)')
  expect(await shop.end()).toBe(0)
  expect(shop.complaints()).toBe('')
})

it('brings a Postgres along, and leaves nothing behind', async () => {
  const { DATABASE_URL: _given, ...env } = process.env
  const shop = startShop({ ...env, DATABASE_URL: undefined, WORKERS: '1' })
  const [, url] = await shop.printed(/(http:\S+) is process/)
  const id = await post(`${url}orders`, 'a book')
  const events = await (await fetch(`${url}orders/${id}`)).text()
  expect(events).toContain('a book is on its way')
  const all = [...shop.text().matchAll(/is process (\d+)/g)].map(([, pid]) => Number(pid))
  expect(await shop.end()).toBe(0)
  expect(shop.complaints()).toBe('')
  expect(all.length).toBe(2)
  for (const pid of all) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})
