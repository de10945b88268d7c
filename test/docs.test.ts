import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { build } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'
import { runChild } from './child'
import { blocksOf, type DocsModule, modulesOf, originOf } from './docs-blocks'
import { ROOT } from './root'
import { TSC } from './tsc'

// Below `test`, so that imports resolve to the workspace.
const FOLDER = join(ROOT, 'test', '.tmp', 'docs')
const NATIVE = ['@libsql/client', 'better-sqlite3', 'pg', 'sqlocal', 'sqlocal/*', 'libsql']
const TSCONFIG = {
  extends: '../../../tsconfig.base.json',
  compilerOptions: {
    lib: ['ES2022', 'DOM', 'DOM.AsyncIterable'],
    types: ['node'],
    jsx: 'react-jsx',
    noUnusedLocals: false,
    noUnusedParameters: false,
  },
  include: ['.'],
}

function pages(): readonly string[] {
  const below = (folder: string) =>
    existsSync(join(ROOT, folder))
      ? readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
          .filter((path) => path.endsWith('.md'))
          .map((path) => `${folder}/${path}`)
      : []
  const readmes = ['packages', 'apps', 'examples'].flatMap((folder) =>
    existsSync(join(ROOT, folder)) ? readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}/README.md`) : [],
  )
  return ['README.md', ...below('docs'), ...readmes].filter((path) => existsSync(join(ROOT, path)))
}

const BLOCKS = pages().flatMap((page) => blocksOf(page, readFileSync(join(ROOT, page), 'utf8')))
const MODULES = modulesOf(BLOCKS)

function writeAll(modules: readonly DocsModule[]): void {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  for (const { path, source } of modules) {
    mkdirSync(dirname(join(FOLDER, path)), { recursive: true })
    writeFileSync(join(FOLDER, path), source)
  }
}

/** What `tsc` says of each module, with the lines of the pages. */
function compileAll(modules: readonly DocsModule[]): ReadonlyMap<string, readonly string[]> {
  const { stdout } = spawnSync(execPath, [TSC, '-p', FOLDER, '--pretty', 'false'], { cwd: FOLDER, encoding: 'utf8' })
  const errors = new Map<string, string[]>()
  for (const line of stdout.split('\n')) {
    const [, path = '', at = '', message = ''] = line.match(/^(.+?)\((\d+),\d+\): (.*)$/) ?? []
    if (path === '') continue
    const module = modules.find((candidate) => candidate.path === path)
    const text = module === undefined ? line : `${originOf(module, Number(at))} ${message}`
    errors.set(path, [...(errors.get(path) ?? []), text])
  }
  return errors
}

async function runModule({ path, running }: DocsModule): Promise<void> {
  const entry = join(FOLDER, path.replace(/\.ts$/, '.run.ts'))
  writeFileSync(entry, running ?? '')
  const outfile = join(FOLDER, path.replace(/\.ts$/, '.mjs'))
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    conditions: ['@coji/durably-source'],
    external: NATIVE,
    logLevel: 'error',
  })
  const cwd = mkdtempSync(join(tmpdir(), 'durably-docs-'))
  try {
    runChild({ command: execPath, args: [outfile], cwd, timeoutMs: 60_000 })
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
}

describe('code in the docs', () => {
  let errors: ReadonlyMap<string, readonly string[]> = new Map()
  beforeAll(() => {
    if (MODULES.length === 0) return
    writeAll(MODULES)
    errors = compileAll(MODULES)
  })

  it('compiles without an error outside of the blocks', () => {
    const own = new Set(MODULES.map((module) => module.path))
    expect([...errors].filter(([path]) => !own.has(path)).flatMap(([, texts]) => texts)).toEqual([])
  })

  it('is only left out for a written reason', () => {
    const silent = BLOCKS.filter(({ ignored }) => ignored?.trim() === '')
    expect(silent.map(({ page, line }) => `${page}:${line}`)).toEqual([])
  })

  it('closes an instance only where nothing goes on from it, so that blocks can be pasted below each other', () => {
    const closedEarly = MODULES.flatMap(({ blocks }) => blocks.slice(0, -1)).filter(({ code }) =>
      /^await \w+\.close\(\)/m.test(code),
    )
    expect(closedEarly.map(({ page, line }) => `${page}:${line}`)).toEqual([])
  })

  it('has file names of its own', () => {
    expect(new Set(MODULES.map((module) => module.path)).size).toBe(MODULES.length)
  })

  if (MODULES.length > 0) {
    it.each(MODULES)('compiles $path', ({ path }) => {
      expect(errors.get(path) ?? []).toEqual([])
    })
  }

  const running = MODULES.filter(({ running }) => running !== null)
  if (running.length > 0) it.each(running)('runs $path', runModule, 90_000)
})
