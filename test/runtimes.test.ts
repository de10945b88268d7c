import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { afterAll, expect, it } from 'vitest'
import { ROOT } from './root'
import { SCALE } from './scale'

const folder = mkdtempSync(join(tmpdir(), 'durably-runtimes-'))
const program = join(folder, 'follow-a-run.mjs')

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function bundle(): void {
  buildSync({
    entryPoints: [join(ROOT, 'test/runtimes/follow-a-run.ts')],
    ...{ bundle: true, platform: 'neutral', format: 'esm', mainFields: ['module', 'main'], outfile: program },
    conditions: ['@coji/durably-source', 'module', 'import'],
  })
}

it('the server needs no framework and nothing of Node', () => {
  bundle()
})

/** Some hundred megabytes, fetched by npm: for the long lane alone. */
const RUNTIMES = SCALE === 'full' ? { bun: ['run'], deno: ['run', '--allow-net', '--allow-env'] } : {}

it.each(Object.entries(RUNTIMES))('serves and follows runs in %s', (name, args) => {
  bundle()
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefix', folder, name], { stdio: 'ignore' })
  const said = execFileSync(join(folder, 'node_modules', '.bin', name), [...args, program], { encoding: 'utf8' })
  expect(JSON.parse(said)).toEqual({ status: 'completed', payload: { text: 'ü' }, output: 42 })
})
