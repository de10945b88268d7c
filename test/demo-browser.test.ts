import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { env, execPath, kill } from 'node:process'
import type { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { ROOT } from './root'

const SCRIPT = join(ROOT, 'scripts', 'demo-browser.mjs')

interface ServedDemo {
  readonly url: string
  /** Ends the script as a person's process manager would: the script alone is told. */
  end(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, 'localhost'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('There is no free port.')
  server.close()
  await once(server, 'close')
  return address.port
}

/** Without what vitest sets for itself: Vite would listen to it. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^(NODE_ENV|NODE_OPTIONS|VITE|TEST|DEV|PROD|MODE)/.test(name))
  return { ...Object.fromEntries(kept), NO_COLOR: '1' }
}

function run(...args: readonly string[]) {
  const child = spawnSync(execPath, [SCRIPT, ...args], { encoding: 'utf8', env: cleanEnvironment(), timeout: 20_000 })
  return { status: child.status, stdout: child.stdout, stderr: child.stderr }
}

function printedAddress(child: ChildProcessByStdio<null, Readable, Readable>): Promise<string> {
  let text = ''
  return new Promise((resolve, reject) => {
    const read = (more: Buffer): void => {
      text += more.toString()
      const found = /Local: +(http:\S+)/.exec(text)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.on('close', (code) => reject(new Error(`demo:browser ended with ${code}:\n${text}`)))
  })
}

/** Runs `use` with the demo that the script serves; no process of it is left afterwards. */
async function withServedDemo(port: number, use: (demo: ServedDemo) => Promise<void>): Promise<void> {
  const child = spawn(execPath, [SCRIPT, '--port', String(port)], {
    detached: true,
    env: cleanEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid === undefined) throw new Error('demo:browser does not start.')
  // What it started has the same streams: they are closed when nothing of it is left.
  let hasEnded = false
  child.once('close', () => {
    hasEnded = true
  })
  const ended = once(child, 'close')
  const killAll = () => kill(-pid, 'SIGKILL')
  // A test that is given up leaves no server behind.
  process.once('exit', killAll)
  try {
    const url = await printedAddress(child)
    const end = async () => {
      child.kill('SIGTERM')
      await ended
    }
    await use({ url, end })
  } finally {
    process.off('exit', killAll)
    if (!hasEnded) killAll()
    await ended
  }
}

describe('npm run demo:browser', () => {
  it('serves the demo on the port it is given, with the headers that it needs, until it is told to end', async () => {
    const port = await freePort()
    await withServedDemo(port, async ({ url, end }) => {
      expect(new URL(url).port).toBe(String(port))
      const response = await fetch(url)
      expect(response.status).toBe(200)
      expect(response.headers.get('Cross-Origin-Opener-Policy')).toBe('same-origin')
      expect(response.headers.get('Cross-Origin-Embedder-Policy')).toBe('require-corp')
      const entry = /<script type="module" src="([^"]*main\.tsx[^"]*)"/.exec(await response.text())?.[1] ?? ''
      const module = await fetch(new URL(entry, url))
      expect(module.headers.get('Content-Type')).toContain('javascript')
      expect(await module.text()).toContain('startDemo')
      await end()
      await expect(fetch(url)).rejects.toThrow()
    })
  })

  it('does not take another port when the one it is given is taken', async () => {
    const server = createServer()
    await once(server.listen(0, 'localhost'), 'listening')
    const address = server.address()
    const port = address === null || typeof address === 'string' ? 0 : address.port
    try {
      const served = withServedDemo(port, async () => undefined)
      await expect(served).rejects.toThrow(new RegExp(`ended with [1-9][^]*${port} is already in use`))
    } finally {
      server.close()
    }
  })

  it('shows its options', () => {
    const { status, stdout, stderr } = run('--help')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    for (const option of ['--port', '--preview', '--help']) expect(stdout).toContain(`  ${option} `)
  })

  it.each(['0', '65536', '80a', '1.5', '-1'])('refuses --port=%s', (port) => {
    const message = `--port takes a number from 1 to 65535, not ${port}.\n`
    expect(run(`--port=${port}`)).toEqual({ status: 1, stdout: '', stderr: message })
  })

  it('refuses an option that it does not know', () => {
    const { status, stdout, stderr } = run('--open')
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain('--open')
  })
})
