import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { seeRunThrough } from './mounted-handler'
import { ROOT } from './root'
import { SCALE } from './scale'

const PROGRAMS = join(ROOT, 'test/runtimes')
const folder = mkdtempSync(join(tmpdir(), 'durably-runtimes-'))

beforeAll(async () => {
  await build({
    entryPoints: { serve: join(PROGRAMS, 'serve.ts'), workerd: join(PROGRAMS, 'workerd.ts') },
    ...{ bundle: true, platform: 'neutral', format: 'esm', mainFields: ['module', 'main'] },
    ...{ outdir: folder, outExtension: { '.js': '.mjs' } },
    conditions: ['@coji/durably-source', 'module', 'import'],
  })
  copyFileSync(join(PROGRAMS, 'workerd.capnp'), join(folder, 'workerd.capnp'))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('the server needs no framework and nothing of Node', () => {
  for (const program of ['serve', 'workerd']) {
    expect(readFileSync(join(folder, `${program}.mjs`), 'utf8')).not.toMatch(/^import /m)
  }
})

/** Which version of each, and how it is told to serve; it says at which port. */
const COMMANDS = {
  bun: { version: '1.4.4', args: ['run', 'serve.mjs'] },
  deno: { version: '2.9.6', args: ['run', '--allow-net', '--allow-env', 'serve.mjs'] },
  workerd: { version: '1.20261117.1', args: ['serve', '--control-fd=1', 'workerd.capnp'] },
} as const

/** Some hundred megabytes, fetched by npm: for the long lane alone. */
const RUNTIMES = SCALE === 'full' ? Object.entries(COMMANDS) : []

it.each(RUNTIMES)('serves and follows runs in %s', async (name, { version, args }) => {
  const wanted = `${name}@${version}`
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefix', folder, wanted], { stdio: 'ignore' })
  const port = await listeningPort(name, args)
  await seeRunThrough(`http://127.0.0.1:${port}/api`, {
    ...{ jobName: 'ask', payload: { text: 'ü' }, signalName: 'answer', value: 42, output: 42 },
  })
})

async function listeningPort(name: string, args: readonly string[]): Promise<number> {
  const command = join(folder, 'node_modules', '.bin', name)
  // What npm puts there may be a program that starts another one.
  const child = spawn(command, args, { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const { port } = JSON.parse(line) as { readonly port?: number }
    if (port !== undefined) return port
  }
  throw new Error(`${name} ended before it served anything.`)
}
