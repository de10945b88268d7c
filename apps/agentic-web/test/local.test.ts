import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { itInFullLane } from '../../../test/full-lane'
import { paced } from '../../../test/pace'
import { createDatabase } from '../../../test/postgres'
import { ROOT } from '../../../test/root'
import { SCALE } from '../../../test/scale'
import { buildPrograms } from '../build.mjs'
import { freePort } from '../src/local/free-port'
import { buildPage } from '../web/test/built-page'
import { answerIn, Browser } from './deployment'

const APP = fileURLToPath(new URL('..', import.meta.url))

/** What `npm run agentic` builds, beside the packages of the workspace, of which one is the database for development. */
async function build(): Promise<string> {
  const folder = join(APP, 'node_modules/.cache', `agentic-web-${process.pid}`)
  await mkdir(folder, { recursive: true })
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const dist = join(folder, 'dist')
  await Promise.all([
    buildPrograms(dist),
    buildPage(join(dist, 'web')),
    cp(join(APP, 'docker-compose.yml'), join(folder, 'docker-compose.yml')),
  ])
  return folder
}

async function given(): Promise<Record<string, string>> {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  return { DATABASE_URL: database.url }
}

const DATABASES: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  'a database that is given': given,
  // It makes a user of the system where it is started by root.
  ...(SCALE === 'full' && { 'a Postgres of its own': async () => ({}) }),
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** From its start to a page that can be used, on the machine that times were chosen on. */
const READY_MS = 30_000

/** Starts it, chats with it, and ends it as a terminal does: Ctrl-C is told to all that was started there. */
async function seeItWork(program: string, env: Record<string, string>): Promise<void> {
  const port = await freePort()
  const { PATH = '', HOME = '' } = process.env
  const running = spawn(process.execPath, [program, '--port', String(port)], {
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  const tellAll = (signal: NodeJS.Signals) => process.kill(-(running.pid ?? 0), signal)
  onTestFinished(() => void (running.exitCode === null && tellAll('SIGKILL')))
  const lines: string[] = []
  createInterface({ input: running.stdout }).on('line', (line) => lines.push(line))
  await expect.poll(() => lines.join('\n')).toContain('Ctrl-C ends all of it')
  const [, seconds] = /ready after ([\d.]+) s/.exec(lines.join('\n')) ?? []
  // Beside everything else it takes as long as the others let it.
  expect(Number(seconds)).toBeLessThan(SCALE === 'full' ? paced(READY_MS) / 1000 : Number.POSITIVE_INFINITY)
  const pids = lines.flatMap((line) => /is process (\d+)/.exec(line)?.[1] ?? []).map(Number)
  expect(pids).toHaveLength(5)

  await seeItAnswer(`http://localhost:${port}`)

  tellAll('SIGINT')
  expect(await once(running, 'exit')).toEqual([0, null])
  expect(pids.filter(isAlive)).toEqual([])
}

async function seeItAnswer(url: string): Promise<void> {
  expect(await (await fetch(url)).text()).toContain('<script')
  const ada = new Browser(url)
  ada.origin = url
  await ada.be('ada')
  const run = await ada.say(await ada.newSession(), 'Hello there')
  expect(answerIn(await ada.ended(run))).toContain('You said: **Hello there**')
}

it.each(Object.entries(DATABASES))(
  'everything starts without Docker on %s, answers, and ends with Ctrl-C',
  async (_, database) => {
    const [folder, env] = await Promise.all([build(), database()])
    await seeItWork(join(folder, 'dist/agentic.js'), env)
  },
)

itInFullLane('the script at the root builds it, starts it, and ends with it', async () => {
  await seeItWork(join(ROOT, 'scripts/agentic.mjs'), await given())
})
