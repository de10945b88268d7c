import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runChild } from './child'
import { node24 } from './node-24'
import { ROOT } from './root'
import { inLane } from './scale'

const SMOKE = join(ROOT, 'test', 'smoke')
const BUNDLED = join(ROOT, 'test', '.tmp', 'smoke')
const NATIVE = ['@libsql/client', 'better-sqlite3', 'pg', 'sqlocal', 'sqlocal/*']
const require = createRequire(import.meta.url)

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'durably-smoke-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function smoke(node: string, script: string): string {
  const database = join(folder, `${Math.random().toString(36).slice(2)}.db`)
  return runChild({ command: node, args: [script, database], cwd: folder, timeoutMs: 60_000 }).trim()
}

/** The script with Kysely replaced by the newest minor that the peer range allows. */
async function withNextKysely(script: string): Promise<string> {
  const outfile = join(BUNDLED, script)
  await build({
    entryPoints: [join(SMOKE, script)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    alias: { kysely: require.resolve('kysely-next') },
    external: NATIVE,
    logLevel: 'error',
    banner: { js: "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)" },
  })
  return outfile
}

function versionOf(name: string): string {
  const path = join(ROOT, 'test', 'node_modules', name, 'package.json')
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}

describe('the built packages', () => {
  const scripts = ['memory.mjs', 'memory.cjs', 'libsql.mjs', 'libsql.cjs']

  it.each(scripts)('run %s on this Node', (script) => {
    expect(smoke(execPath, join(SMOKE, script))).toMatch(/^v\d+\S* 42$/)
  })

  it.each(inLane(scripts, (script) => script === 'libsql.mjs'))('run %s on Node 24', (script) => {
    expect(smoke(node24(), join(SMOKE, script))).toMatch(/^v24\.\S+ 42$/)
  })

  it('run on Node 24 with both ends of the supported range of Kysely', async () => {
    expect(versionOf('kysely')).toMatch(/^0\.28\./)
    expect(versionOf('kysely-next')).toMatch(/^0\.29\./)
    expect(smoke(node24(), await withNextKysely('libsql.mjs'))).toMatch(/^v24\.\S+ 42$/)
  })
})

describe('the built command', () => {
  const command = join(ROOT, 'packages', 'cli', 'dist', 'durably.js')
  const made = () => {
    const database = join(folder, `${Math.random().toString(36).slice(2)}.db`)
    runChild({ command: execPath, args: [join(SMOKE, 'libsql.mjs'), database], cwd: folder })
    return database
  }

  it.each(inLane(['this Node', 'Node 24'], (node) => node === 'this Node'))('reads a database on %s', (which) => {
    const node = which === 'this Node' ? execPath : node24()
    const printed = runChild({ command: node, args: [command, 'runs', '--json', '--db', made()], cwd: folder })
    expect(JSON.parse(printed)).toMatchObject({ runs: [{ status: 'completed' }], next: null })
  })

  it('serves the built page of the dashboard', async () => {
    const args = [command, 'dashboard', '--db', made(), '--port', '0']
    const child = spawn(execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    try {
      const [line] = await once(child.stdout, 'data')
      const url = String(line).trim()
      const page = await (await fetch(url)).text()
      const [, script] = /<script[^>]* src="([^"]+)"/.exec(page) ?? []
      expect(await (await fetch(new URL(script ?? '', `${url}/`))).text()).toContain('durably-api')
      expect(await (await fetch(`${url}/api/stats`)).json()).toMatchObject({ completed: 1 })
    } finally {
      child.kill('SIGKILL')
    }
  })
})
