import { createDurably } from '@coji/durably'
import { libsql } from '@coji/durably/libsql'
import { createScheduler } from '@coji/durably-cluster'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, type TestContext } from 'vitest'

const START = fileURLToPath(new URL('../src/start.js', import.meta.url))
const EVERY_MS = 500

interface Service {
  readonly child: ChildProcess
  readonly closed: Promise<unknown>
  readonly text: () => string
  readonly said: (what: RegExp) => Promise<RegExpExecArray>
}

function start({ onTestFinished }: TestContext, database: string): Service {
  const args = [START, '--database', database, '--port', '0', '--every', String(EVERY_MS)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  const closed = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await closed
  })
  const said = async (what: RegExp) => {
    for (;;) {
      const found = what.exec(text)
      if (found !== null) return found
      if (child.exitCode !== null) throw new Error(`It ended before it said ${what}:\n${text}`)
      await Promise.race([once(child.stdout, 'data'), closed])
    }
  }
  return { child, closed, text: () => text, said }
}

async function send(service: Service, event: object): Promise<unknown> {
  const [, port = ''] = await service.said(/port (\d+)/)
  const answer = await fetch(`http://127.0.0.1:${port}/webhook`, { method: 'POST', body: JSON.stringify(event) })
  return answer.json()
}

it('neither loses nor doubles anything when it is killed', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'durably-schedules-'))
  context.onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const database = join(folder, 'app.db')
  const order = { id: 'evt 1', type: 'order.paid', order: '17', test: false }

  const first = start(context, database)
  const published = await send(first, order)
  expect(published).toMatchObject({ deduplicated: false })
  await first.said(/order 17 is shipped/)
  await first.said(/report of/)
  first.child.kill('SIGKILL')
  await first.closed

  const second = start(context, database)
  expect(await send(second, order)).toEqual({ ...(published as object), deduplicated: true })
  await send(second, { id: 'evt 2', type: 'order.paid', order: '18', test: true })
  await second.said(/nobody wants "order.paid"/)
  await second.said(/report of/)
  // A first process that took long has reminded already.
  if (!/reminder: lunch/.test(first.text())) await second.said(/reminder: lunch/)
  second.child.kill('SIGTERM')
  await second.closed

  const durably = createDurably({ dialect: libsql(`file:${database}`) })
  const runs = await durably.getRuns({ jobName: 'report' })
  const instants = runs.map(({ scheduledFor }) => Date.parse(scheduledFor ?? '')).sort((a, b) => a - b)
  expect(instants).toEqual(instants.map((_, index) => (instants[0] ?? 0) + index * EVERY_MS))
  const report = await createScheduler(durably).get('report')
  expect(instants.at(-1)).toBe(Date.parse(report?.firedUntil ?? ''))
  expect((await durably.getRuns({ jobName: 'ship' })).map(({ payload }) => payload)).toEqual([{ order: '17' }])
  expect((await durably.getRuns({ jobName: 'remind' })).length).toBe(1)
  await durably.close()
})
