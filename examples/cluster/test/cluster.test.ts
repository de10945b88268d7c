import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { createDatabase } from '../../../test/postgres'
import { itInFullLane } from '../../../test/full-lane'

const START = fileURLToPath(new URL('../src/start.js', import.meta.url))
const NAMES = ['alice', 'bob', 'carol']

/** The program, with somebody in front of it. */
async function startExample() {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  const child = spawn(process.execPath, [START], { env: { ...process.env, DATABASE_URL: database.url } })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  let complaints = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    complaints += more
  })
  return {
    /** Since the last key. */
    async shown(pattern: RegExp): Promise<readonly string[]> {
      await expect.poll(() => text, { interval: 20, message: complaints }).toMatch(pattern)
      return pattern.exec(text) ?? []
    },
    /** How many runs, by the newest picture. */
    completed: () => Number([...text.matchAll(/completed (\d+) /g)].at(-1)?.[1] ?? 0),
    press(keys: string): void {
      text = ''
      child.stdin.write(keys)
    },
    async quit(): Promise<void> {
      const closed = once(child, 'close')
      child.stdin.write('q')
      const [code] = (await closed) as [number | null]
      expect([code, complaints]).toEqual([0, ''])
    },
  }
}

type Example = Awaited<ReturnType<typeof startExample>>

/** Its name, once runs are executed. */
async function leaderOf({ shown }: Example): Promise<string> {
  const [, leader = ''] = await shown(/led by (\w+), epoch 1\n/)
  await shown(/completed [1-9]/)
  return leader
}

const choose = (name: string) => String(NAMES.indexOf(name) + 1)

/** One that does not lead, and to which nothing was done. */
const well = (name: string) => new RegExp(`> ${name} +active +[#+]* *\\n`)

it('shows who leads, goes on when the leader is killed, and starts it anew', async () => {
  const example = await startExample()
  const leader = await leaderOf(example)
  example.press(`${choose(leader)}k`)
  await example.shown(/led by \w+, epoch 2\n/)
  await example.shown(new RegExp(`> ${leader} .* dead\n`))
  example.press('k')
  await example.shown(well(leader))
  await example.quit()
})

itInFullLane('goes on when the leader is paused, which is one of the others when it is continued', async () => {
  const example = await startExample()
  const leader = await leaderOf(example)
  example.press(`${choose(leader)}p`)
  await example.shown(new RegExp(`> ${leader} .* paused\n`))
  const [, next = ''] = await example.shown(/led by (\w+), epoch 2\n/)
  expect(next).not.toBe(leader)
  await example.shown(new RegExp(`> ${leader} +gone .* paused\n`))
  example.press('p')
  await example.shown(well(leader))
  await example.shown(new RegExp(`led by ${next}, epoch 2\n`))
  await example.quit()
})

itInFullLane('goes on when the leader is cut off, which is one of the others when it is mended', async () => {
  const example = await startExample()
  const leader = await leaderOf(example)
  example.press(`${choose(leader)}c`)
  await example.shown(new RegExp(`> ${leader} .* cut off\n`))
  const [, next = ''] = await example.shown(/led by (\w+), epoch 2\n/)
  expect(next).not.toBe(leader)
  await example.shown(new RegExp(`> ${leader} +gone .* cut off\n`))
  const before = example.completed()
  example.press('c')
  await example.shown(well(leader))
  await example.shown(new RegExp(`led by ${next}, epoch 2\n`))
  await expect.poll(example.completed).toBeGreaterThan(before)
  await example.quit()
})
