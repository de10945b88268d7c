import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from './root'

interface Fixture {
  readonly path: string
  readonly code: string
  readonly breaks: string | null
}

const IMPORT = 'lint/style/noRestrictedImports'
const GLOBAL = 'lint/style/noRestrictedGlobals'

function importing(folder: string, specifier: string, breaks: string | null = IMPORT): Fixture {
  const code = `import { a } from '${specifier}'\n\nexport const b = a\n`
  const name = specifier
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
    .join('-')
  return { path: `${folder}/${breaks === null ? 'may' : 'may-not'}-import-${name}.ts`, code, breaks }
}

function allowed(folder: string, ...specifiers: readonly string[]): readonly Fixture[] {
  return specifiers.map((specifier) => importing(folder, specifier, null))
}

function forbidden(folder: string, ...specifiers: readonly string[]): readonly Fixture[] {
  return specifiers.map((specifier) => importing(folder, specifier))
}

function stating(folder: string, code: string, breaks: string): Fixture {
  const name = breaks.split('/').at(-1)?.toLowerCase()
  return { path: `${folder}/${name}-${code.length}.ts`, code: `${code}\n`, breaks }
}

const [CORE, SQL, PLUGINS, SERVER, CLUSTER, UMBRELLA, REACT] = [
  'core',
  'storage-kysely',
  'plugins',
  'server',
  'cluster',
  'durably',
  'react',
].map((name) => `packages/${name}/src`) as [string, string, string, string, string, string, string]

const FIXTURES: readonly Fixture[] = [
  ...allowed(CORE, './instance', '../index'),
  ...forbidden(CORE, 'ulidx', 'node:fs', 'fs', 'kysely', 'zod', 'vitest', '@coji/durably-plugins', '@coji/durably'),
  ...forbidden(`${CORE}/testing`, 'node:fs', 'vitest', '../../../plugins/src/index'),
  ...allowed(`${CORE}/base`, './errors'),
  ...forbidden(`${CORE}/base`, '../port', '../instance', 'node:fs'),
  ...allowed(`${CORE}/step`, './call', '../base', '../commit'),
  ...forbidden(`${CORE}/step`, '../worker', '../instance', '../index', '../base/errors', '../commit/index', 'node:fs'),
  ...allowed(`${CORE}/memory`, './line', '../port'),
  ...forbidden(`${CORE}/memory`, '../job', '../port/storage'),
  ...allowed(`${CORE}/queue`, '../engine', '../instance', './task'),
  ...forbidden(`${CORE}/queue`, '../index', '../memory/memory-storage', 'node:fs'),
  ...allowed(SQL, '@coji/durably-core', '@coji/durably-core/storage', 'kysely', './fences'),
  ...allowed(`${SQL}/write`, './commit', '../statement', '../connection', 'kysely', '@coji/durably-core/storage'),
  ...forbidden(
    `${SQL}/write`,
    '../cluster',
    '../drivers/libsql',
    '../statement/rows',
    '../kysely-storage',
    'better-sqlite3',
  ),
  ...forbidden(`${SQL}/dialect`, '../statement', '@coji/durably-core/testing'),
  ...allowed(
    `${SQL}/drivers`,
    '@libsql/client',
    '@libsql/kysely-libsql',
    'better-sqlite3',
    'sqlocal',
    'sqlocal/kysely',
    'pg',
    '../dialect',
    '../connection',
  ),
  ...forbidden(`${SQL}/drivers`, '../statement', '../write', '../connection/semaphore', 'zod', 'node:fs'),
  ...forbidden(
    SQL,
    'zod',
    '@coji/durably-plugins',
    '@coji/durably',
    '@coji/durably-core/testing',
    '../../core/src/run',
  ),
  ...allowed(PLUGINS, '@coji/durably-core', '@coji/durably-core/extend', './retention'),
  ...allowed(SERVER, '@coji/durably-core', '@coji/durably-core/extend', 'zod', './routes'),
  ...forbidden(SERVER, 'node:http', 'hono', 'kysely', '@coji/durably', '../../core/src/index'),
  ...allowed(`${SERVER}/client`, '@coji/durably-core', 'eventsource-parser', '../wire', './follow'),
  ...forbidden(`${SERVER}/client`, 'zod', '../routes', '@coji/durably-core/storage', '@coji/durably-server'),
  ...allowed(`${PLUGINS}/node`, '@coji/durably-core', 'node:fs', 'node:fs/promises', '../log-lines'),
  ...forbidden(`${PLUGINS}/node`, 'kysely', '@coji/durably'),
  ...forbidden(PLUGINS, 'node:fs', 'kysely', '@coji/durably-storage-kysely', '@coji/durably', '../../core/src/index'),
  ...allowed(CLUSTER, '@coji/durably-core', 'croner', './duty'),
  ...forbidden(CLUSTER, 'kysely', '@coji/durably-storage-kysely', '@coji/durably', 'node:fs', '../../core/src/index'),
  ...allowed(
    UMBRELLA,
    '@coji/durably-core',
    '@coji/durably-core/queue',
    '@coji/durably-storage-kysely/libsql',
    '@coji/durably-plugins',
    'kysely',
  ),
  ...forbidden(UMBRELLA, '@libsql/client', 'better-sqlite3', 'ulidx', 'node:path', '../../core/src/index'),
  ...allowed(REACT, '@coji/durably-core', 'react', './run-store'),
  ...forbidden(REACT, 'react-dom', 'kysely', '@coji/durably', '@coji/durably-plugins', '../../core/src/index'),
  ...allowed('packages/dashboard/src', './assets'),
  ...forbidden('packages/dashboard/src', 'node:fs', 'react', '@coji/durably-server', '../ui/build'),
  ...allowed('packages/dashboard/ui/list', '@coji/durably-react', '@coji/durably-server/client', 'wouter', '../format'),
  ...forbidden('packages/dashboard/ui/list', '@coji/durably-server', '@coji/durably', 'zod', 'node:fs'),
  ...allowed(
    'packages/cli/src',
    '@coji/durably',
    '@coji/durably/libsql',
    '@coji/durably-cluster',
    'commander',
    './program',
  ),
  ...allowed('packages/cli/src', 'node:fs/promises'),
  ...forbidden('packages/cli/src', '@coji/durably-core', '@libsql/client', 'pg', 'hono', '../../durably/src/index'),
  ...allowed('packages/durably/test', 'node:fs', 'zod', '../src/index'),
  ...forbidden('packages/durably/test', '../../core/src/index', '@coji/durably-core/src/run'),
  ...allowed('apps/sample/src', '@coji/durably', '@coji/durably/libsql', 'node:fs', './main'),
  ...forbidden('apps/sample/src', '../../../packages/core/src/index', '@coji/durably-core/src/run'),
  ...forbidden('examples/sample', '../../packages/durably/src/index', '@coji/durably/dist/index.js'),
  stating(CORE, 'export const a = process.pid', GLOBAL),
  stating(CORE, 'export const a = Buffer.alloc(1)', GLOBAL),
  stating(CORE, 'export const a = setImmediate', GLOBAL),
  stating(CORE, 'export const a = window', GLOBAL),
  stating(CORE, 'export const a = document.title', GLOBAL),
  stating(CORE, 'export const a = localStorage.length', GLOBAL),
  stating(SQL, 'console.log(1)', 'lint/suspicious/noConsole'),
  stating(SQL, 'export const a: any = 1', 'lint/suspicious/noExplicitAny'),
  stating(SQL, 'export default 1', 'lint/style/noDefaultExport'),
  stating(SQL, "export * from './fences'", 'lint/performance/noReExportAll'),
  stating(SQL, 'export const f = (a: 1, b: 2, c: 3, d: 4) => [a, b, c, d]', 'lint/complexity/useMaxParams'),
]

let root = ''
let found: ReadonlyMap<string, readonly string[]> = new Map()

/** Lints every fixture in one call, in a folder of its own that has the workspace's rules and layout. */
function lintAll(): ReadonlyMap<string, readonly string[]> {
  const biome = createRequire(join(ROOT, 'package.json')).resolve('@biomejs/biome/bin/biome')
  const flags = ['lint', '--vcs-enabled=false', '--reporter=json', '--max-diagnostics=none', '.']
  const { stdout } = spawnSync(execPath, [biome, ...flags], { cwd: root, encoding: 'utf8' })
  const { diagnostics } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
    diagnostics: { category: string; location: { path: string } }[]
  }
  const byPath = new Map<string, string[]>()
  for (const { category, location } of diagnostics) {
    byPath.set(location.path, [...(byPath.get(location.path) ?? []), category])
  }
  return byPath
}

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'durably-arrows-'))
  copyFileSync(join(ROOT, 'biome.json'), join(root, 'biome.json'))
  for (const { path, code } of FIXTURES) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), code)
  }
  found = lintAll()
})

afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('the arrows between packages and the house rules', () => {
  it('has one file for each fixture', () => {
    expect(new Set(FIXTURES.map((fixture) => fixture.path)).size).toBe(FIXTURES.length)
  })

  it.each(FIXTURES.filter((fixture) => fixture.breaks === null))('allows $path', ({ path }) => {
    expect(found.get(path) ?? []).toEqual([])
  })

  it.each(FIXTURES.filter((fixture) => fixture.breaks !== null))('refuses $path', ({ path, breaks }) => {
    expect(found.get(path) ?? []).toContain(breaks)
  })
})
