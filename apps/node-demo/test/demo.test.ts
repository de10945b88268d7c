import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { itInFullLane } from '../../../test/full-lane'
import { inLane } from '../../../test/scale'

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly text: string
  readonly complaints: string
}

let temporary: string

beforeEach(async () => {
  if (!existsSync(MAIN)) throw new Error('The demo is not built. Run `pnpm build` first.')
  temporary = await mkdtemp(join(tmpdir(), 'durably-demo-test-'))
})
afterEach(() => rm(temporary, { recursive: true }))

/** Runs the built demo; `onText` sees all of the output so far, each time more comes. */
function demo(argv: readonly string[], onText?: (text: string, kill: (signal: NodeJS.Signals) => void) => void) {
  return new Promise<Ended>((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...argv], { env: { ...process.env, TMPDIR: temporary } })
    let text = ''
    let complaints = ''
    child.stdout.setEncoding('utf8').on('data', (more: string) => {
      text += more
      onText?.(text, (signal) => child.kill(signal))
    })
    child.stderr.setEncoding('utf8').on('data', (more: string) => {
      complaints += more
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, text, complaints }))
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const row = (text: string, label: string) => {
  const [, steps, once, skipped, again] = new RegExp(`${label} +(\\d+) +(\\d+) +(\\d+) +(\\d+)`).exec(text) ?? []
  return { steps: Number(steps), once: Number(once), skipped: Number(skipped), again: Number(again) }
}

describe('the built demo', () => {
  test('kills a worker, carries on, and proves it', async () => {
    const { code, text, complaints } = await demo(['--rows', '50000'])
    expect(complaints).toBe('')
    expect(code).toBe(0)
    expect(text).not.toContain('\u001b')
    expect(text.match(/✓/g)).toHaveLength(3)
    const imported = row(text, 'import CSV')
    expect(imported.steps).toBe(101)
    expect(imported.once + imported.again).toBe(101)
    expect(imported.again).toBeLessThanOrEqual(1)
    expect(text).toContain(`killed, ${imported.skipped} steps recorded`)
    // Without `recover` it would be the 30 s of the lease.
    expect(Number(/carries on, (.*) s later/.exec(text)?.[1])).toBeLessThan(25)
    expect(imported.skipped).toBeGreaterThan(30)
    expect(imported.skipped).toBeLessThan(100)
    expect(row(text, 'search index')).toMatchObject({ skipped: 0, again: 0 })
    expect(await readdir(temporary)).toEqual([])
    for (const line of text.split('\n')) expect(line.length, line).toBeLessThan(80)
  })

  itInFullLane('keeps the database it was given, and the folder when asked', async () => {
    const db = join(temporary, 'mine.db')
    const { code, text } = await demo(['--rows', '1000', '--db', db, '--keep'])
    expect(code).toBe(0)
    expect(existsSync(db)).toBe(true)
    const kept = (await readdir(temporary)).find((name) => name.startsWith('durably-demo-'))
    expect(text).toContain(`kept in ${join(temporary, kept ?? 'nothing')}`)
    const again = await demo(['--rows', '1000', '--db', db])
    expect(again.code).toBe(0)
  })

  test('shows the dashboard of its database, and leaves it open until it is told to end', async () => {
    let stats: Promise<unknown> | undefined
    const { code, text } = await demo(['--rows', '1000', '--dashboard'], (sofar, kill) => {
      const [, url] = /stays at (\S+) until Ctrl-C/.exec(sofar) ?? []
      if (url === undefined || stats !== undefined) return
      stats = fetch(`${url}/api/stats`)
        .then((response) => response.json())
        .finally(() => kill('SIGINT'))
    })
    expect(await stats).toMatchObject({ completed: 2, failed: 0 })
    expect(code).toBe(0)
    expect(text).toMatch(/dashboard {2}http:/)
    expect(await readdir(temporary)).toEqual([])
  })

  const signals = { SIGINT: 130, SIGTERM: 143 } as const
  for (const signal of inLane(['SIGINT', 'SIGTERM'] as const, (one) => one === 'SIGINT')) {
    test(`leaves nothing behind after ${signal}`, async () => {
      // Again with each piece of output after it: npm doubles what a terminal sends. But not to a process that is leaving.
      const { code, text } = await demo(['--rows', '50000'], (sofar, kill) => {
        if (sofar.includes('worker 2 (pid') && !sofar.includes('interrupted')) kill(signal)
      })
      expect(code).toBe(signals[signal])
      expect(text).toContain('interrupted')
      expect(await readdir(temporary)).toEqual([])
      const pids = [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]))
      expect(pids).toHaveLength(2)
      expect(pids.filter(isAlive)).toEqual([])
    })
  }

  test('helps', async () => {
    const { code, text } = await demo(['--help'])
    expect(code).toBe(0)
    expect(text).toContain('--rows <n>')
  })

  test('refuses what it does not understand', async () => {
    const { code, text, complaints } = await demo(['--fast'])
    expect({ code, text }).toEqual({ code: 2, text: '' })
    expect(complaints).toContain('--help')
  })

  test('says what is wrong with a database path', async () => {
    const { code, complaints } = await demo(['--db', join(temporary, 'no', 'folder.db')])
    expect(code).toBe(1)
    expect(complaints).toContain('Create it first')
    expect(await readdir(temporary)).toEqual([])
  })
})
