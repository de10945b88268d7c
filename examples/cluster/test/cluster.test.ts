import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { createDatabase } from '../../../test/postgres'

const START = fileURLToPath(new URL('../src/start.js', import.meta.url))

it('shows who leads, and goes on when the leader is killed', async () => {
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
  const shown = async (pattern: RegExp) => {
    await expect.poll(() => text, { interval: 20, message: complaints }).toMatch(pattern)
    return pattern.exec(text) ?? []
  }
  const [, leader = ''] = await shown(/led by (\w+), epoch 1\n/)
  await shown(/completed [1-9]/)
  child.stdin.write(`${['alice', 'bob', 'carol'].indexOf(leader) + 1}k`)
  await shown(/led by \w+, epoch 2\n/)
  await shown(new RegExp(`> ${leader} .* dead\n`))
  child.stdin.write('q')
  const [code] = (await once(child, 'close')) as [number | null]
  expect([code, complaints]).toEqual([0, ''])
})
