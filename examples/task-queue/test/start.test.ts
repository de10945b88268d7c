import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, type TestContext } from 'vitest'
import { MAILS } from '../src/mails.js'

const START = fileURLToPath(new URL('../src/start.js', import.meta.url))
const NOBODY = 'nobody@home.example'
const EVERYBODY_ELSE = MAILS.map(({ to }) => to).filter((to) => to !== NOBODY)
/** So many mails are on their way at a time. */
const CONCURRENCY = 8

function newFolder({ onTestFinished }: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'durably-mails-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const FAST = '3'
/** Slow enough that one who is late still finds it at work. */
const SLOW = '0.3'

function start({ onTestFinished }: TestContext, args: readonly string[], speed = FAST) {
  const child = spawn(process.execPath, [START, ...args], { env: { ...process.env, SPEED: speed } })
  let text = ''
  let complaints = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    complaints += more
  })
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await closed
  })
  return { child, closed, text: () => text, complaints: () => complaints }
}

/** Each line of counts that was printed. */
function countsIn(text: string): readonly Record<string, number>[] {
  const lines = text.split('\n').filter((line) => line.startsWith('queued '))
  return lines.map((line) => {
    const pairs = line.split('  ').map((pair) => pair.split(' '))
    return Object.fromEntries(pairs.map(([state, count]) => [state, Number(count)]))
  })
}

/** To whom the mail server has taken mails, by its own record. */
function recipientsIn(record: string): readonly string[] {
  if (!existsSync(record)) return []
  const lines = readFileSync(record, 'utf8').trim().split('\n')
  return lines.map((line) => (JSON.parse(line) as { to: string }).to)
}

interface Sent {
  readonly record: string
  readonly breaks: number
  /** What was told meanwhile. */
  readonly text: string
}

/**
 * Nobody is left out, and only what was under way when something broke was sent again, or took too long on this machine
 * although it had arrived.
 */
function expectAllIn({ record, breaks, text }: Sent): void {
  const recipients = recipientsIn(record)
  expect(new Set(recipients)).toEqual(new Set(EVERYBODY_ELSE))
  const tooLong = text.match(/^again in .* took longer than/gm)?.length ?? 0
  expect(recipients.length - EVERYBODY_ELSE.length).toBeLessThanOrEqual(breaks * CONCURRENCY + tooLong)
}

// Both wait more than they work.
it.concurrent('every mail is sent, once the server is repaired, but the one that nobody can get', async (test) => {
  const record = join(newFolder(test), 'received.jsonl')
  const { closed, text, complaints } = start(test, ['--received', record])
  expect(await closed).toEqual([0, null])
  expect(complaints()).toBe('')

  expectAllIn({ record, breaks: 1, text: text() })
  const [beforeRepair = '', afterRepair = ''] = text().split('The mail server was repaired')
  for (const dead of [NOBODY, 'linus@broken.example', 'niklaus@silent.example']) {
    expect(beforeRepair).toMatch(new RegExp(`^  ${dead} +\\d attempts?  `, 'm'))
  }
  expect(beforeRepair).toMatch(/^again in \d\.\d s \w+@greylisted\.example +451 4\.7\.1 Greylisted, retry in 0\.5 s$/m)
  expect(afterRepair).toMatch(/^ {2}nobody@home\.example +\d+ attempts? +550 5\.1\.1 No such user here$/m)
  expect(afterRepair.match(/^ {2}\S+@/gm)).toHaveLength(1)

  const counts = countsIn(text())
  const of = (state: string) => counts.map((each) => each[state] ?? 0)
  expect(counts[0]).toMatchObject({ queued: MAILS.length, succeeded: 0, dead: 0 })
  expect(counts.at(-1)).toEqual({
    queued: 0,
    running: 0,
    retry_scheduled: 0,
    succeeded: EVERYBODY_ELSE.length,
    dead: 1,
  })
  expect(new Set(of('succeeded')).size).toBeGreaterThan(5)
  expect(Math.max(...of('running'))).toBeLessThanOrEqual(CONCURRENCY)
  expect(Math.max(...of('retry_scheduled'))).toBeGreaterThan(0)
})

it.concurrent('starts after kill -9 and after Ctrl-C send the rest, and no mail is lost', async (test) => {
  const database = join(newFolder(test), 'mails.db')
  const record = `${database}-received.jsonl`
  const arrived = (count: number) =>
    expect.poll(() => recipientsIn(record).length, { interval: 5 }).toBeGreaterThan(count)

  const killed = start(test, ['--database', database], SLOW)
  await arrived(5)
  killed.child.kill('SIGKILL')
  expect(await killed.closed).toEqual([null, 'SIGKILL'])
  const before = recipientsIn(record).length
  expect(before).toBeLessThan(EVERYBODY_ELSE.length / 2)

  const stopped = start(test, ['--database', database], SLOW)
  await arrived(before + 1)
  stopped.child.kill('SIGINT')
  expect(await stopped.closed).toEqual([130, null])
  expect(stopped.text()).toMatch(/^Stopped with \d+ mails to go\.\nThe next start sends them\.$/m)
  expect(countsIn(stopped.text())[0]?.['succeeded']).toBeGreaterThanOrEqual(before - CONCURRENCY)
  expect(recipientsIn(record).length).toBeLessThan(EVERYBODY_ELSE.length)

  const last = start(test, ['--database', database])
  expect(await last.closed).toEqual([0, null])
  expectAllIn({ record, breaks: 2, text: killed.text() + stopped.text() + last.text() })
  expect(countsIn(last.text()).at(-1)).toMatchObject({ succeeded: EVERYBODY_ELSE.length, dead: 1 })
  expect(killed.complaints() + stopped.complaints() + last.complaints()).toBe('')
})
