import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PACKED } from '../scripts/packages.mjs'
import { runChild } from './child'
import { node24 } from './node-24'
import { TSC } from './tsc'

type Install = 'libsql' | 'sqlocal'

const DIALECTS: Readonly<Record<Install, string>> = {
  libsql: `import { LibsqlDialect } from '@libsql/kysely-libsql'

const dialect = new LibsqlDialect({ url: 'file:app.db' })`,
  sqlocal: `import { SQLocalKysely } from 'sqlocal/kysely'

const { dialect } = new SQLocalKysely('app.db')`,
}

// The dialect of libSQL carries the types of Kysely's ESM build only, hence the cast in CJS.
const DIALECT_IN_CJS = `import type { Dialect } from 'kysely'

const { LibsqlDialect } = require('@libsql/kysely-libsql') as { LibsqlDialect: new (config: { url: string }) => Dialect }
const dialect = new LibsqlDialect({ url: 'file:app.db' })`

/** The program of the first page of the docs, for either install line. */
function program(dialect: string): string {
  return `${dialect}
import { createDurably } from '@coji/durably'
import { z } from 'zod'

async function main(): Promise<void> {
  const durably = createDurably({ dialect })
  const double = durably.defineJob(
    { name: 'double', input: z.object({ n: z.number() }), output: z.object({ twice: z.number() }) },
    async (ctx, payload) => ({ twice: await ctx.run('twice', () => payload.n * 2) }),
  )
  await durably.migrate()
  durably.start()
  const ended: { id: string; output: { twice: number } } = await double.triggerAndWait({ n: 21 })
  await durably.stop()
  await durably.close()
  console.log(\`twice \${ended.output.twice}\`)
}

void main()
`
}

/** The programs of a project: what is in a browser tab has no CJS. */
function programsOf(install: Install): Readonly<Record<string, string>> {
  const esm = { 'program.mts': program(DIALECTS[install]) }
  return install === 'libsql' ? { ...esm, 'program.cts': program(DIALECT_IN_CJS) } : esm
}

function tsconfig(install: Install): string {
  return JSON.stringify({
    compilerOptions: {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      module: 'NodeNext',
      moduleResolution: 'NodeNext',
      target: 'ES2022',
      lib: install === 'sqlocal' ? ['ES2022', 'DOM'] : ['ES2022'],
      types: ['node'],
      outDir: 'built',
    },
    files: Object.keys(programsOf(install)),
  })
}

function tarballs(): readonly string[] {
  if (!existsSync(PACKED)) throw new Error('nothing is packed: run `npm run packages` after `npm run build`')
  // Those for React ask for React, which npm holds against the optional peers of the optional peers of drivers. The command
  // brings drivers along.
  const names = readdirSync(PACKED).filter((name) => !/durably-(react|dashboard|cli)-/.test(name))
  return names.map((name) => join(PACKED, name))
}

const INSTALL_LINES: Readonly<Record<Install, readonly string[]>> = {
  libsql: ['kysely', 'zod', '@libsql/client', '@libsql/kysely-libsql'],
  sqlocal: ['kysely', 'zod', 'sqlocal'],
}

/** A project that did nothing but the install line, with this repository's tarballs for its packages. */
function newProject(install: Install): string {
  const folder = mkdtempSync(join(tmpdir(), `durably-pack-${install}-`))
  writeFileSync(join(folder, 'package.json'), '{ "name": "app", "version": "1.0.0", "private": true }')
  writeFileSync(join(folder, 'tsconfig.json'), tsconfig(install))
  for (const [name, source] of Object.entries(programsOf(install))) writeFileSync(join(folder, name), source)
  const flags = ['--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline']
  const args = ['install', ...flags, ...tarballs(), ...INSTALL_LINES[install], '@types/node@20']
  runChild({ command: 'npm', args, cwd: folder, timeoutMs: 240_000 })
  return folder
}

function builtName(name: string): string {
  return name.replace(/ts$/, 'js')
}

/** What the compiler says of the program and of our declarations; those of other packages are not ours to fix. */
function typeErrors(folder: string): readonly string[] {
  const { stdout } = spawnSync(execPath, [TSC, '-p', '.', '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
  const errors = stdout.split('\n').filter((line) => /error TS\d+/.test(line))
  return errors.filter((line) => !line.startsWith('node_modules/') || line.startsWith('node_modules/@coji/'))
}

describe.each(['libsql', 'sqlocal'] as const)('the packed packages with %s', (install) => {
  let folder = ''
  beforeAll(() => {
    folder = newProject(install)
  }, 300_000)
  afterAll(() => {
    if (folder !== '') rmSync(folder, { recursive: true, force: true })
  })

  it('carry no pointer to sources and bring a licence', () => {
    const own = join(folder, 'node_modules', '@coji', 'durably')
    expect(readFileSync(join(own, 'package.json'), 'utf8')).not.toContain('@coji/durably-source')
    expect(existsSync(join(own, 'LICENSE'))).toBe(true)
    expect(existsSync(join(own, 'src'))).toBe(false)
  })

  it('install no database driver that was not asked for', () => {
    expect(existsSync(join(folder, 'node_modules', 'better-sqlite3'))).toBe(false)
    expect(existsSync(join(folder, 'node_modules', 'sqlocal'))).toBe(install === 'sqlocal')
  })

  it('type-check without skipLibCheck', () => {
    expect(typeErrors(folder)).toEqual([])
    expect(Object.keys(programsOf(install)).every((name) => existsSync(join(folder, 'built', builtName(name))))).toBe(
      true,
    )
  })

  if (install === 'libsql') {
    it.each(['mjs', 'cjs'])(
      'run a job from built/program.%s',
      (extension) => {
        for (const command of [execPath, node24()]) {
          const printed = runChild({ command, args: [`built/program.${extension}`], cwd: folder, timeoutMs: 60_000 })
          expect(printed.trim()).toBe('twice 42')
        }
      },
      120_000,
    )
  }
})
