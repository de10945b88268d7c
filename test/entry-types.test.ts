import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { afterAll, describe, expect, it } from 'vitest'
import { ROOT } from './root'
import { inLane, scaled } from './scale'

const PACKAGES = ['core', 'storage-kysely', 'plugins', 'server', 'cluster', 'durably'] as const

/** What somebody has installed who uses an entry of this name; of `@types` what the driver itself asks for. */
const DRIVERS: Readonly<Record<string, readonly string[]>> = {
  libsql: ['@libsql/client'],
  'better-sqlite3': ['better-sqlite3', '@types/better-sqlite3'],
  sqlocal: ['sqlocal'],
  postgres: ['pg', '@types/pg'],
  telemetry: ['@opentelemetry/api'],
}
/** The declarations for CJS are those for ESM in another file. */
const FORMATS = ['mts', 'cts'].slice(0, scaled({ quick: 1, full: 2 }))
const WITHOUT_KYSELY = ['core', 'plugins', 'cluster', 'server']
/** What comes with a package of ours. */
const DEPENDENCIES: Readonly<Record<string, readonly string[]>> = { server: ['zod'] }

/** The entries of the umbrella have all that is in these. */
const PASSED_ON: readonly string[] = ['core', 'storage-kysely', 'plugins']

interface Entry {
  readonly package: (typeof PACKAGES)[number]
  /** As it is imported. */
  readonly name: string
  readonly installed: readonly string[]
}

function manifest(folder: string): { name: string; exports: Record<string, object | string> } {
  return JSON.parse(readFileSync(join(ROOT, 'packages', folder, 'package.json'), 'utf8'))
}

const ENTRIES: readonly Entry[] = PACKAGES.flatMap((folder) => {
  const { name, exports } = manifest(folder)
  const paths = Object.keys(exports).filter((path) => typeof exports[path] !== 'string')
  return paths.map((path) => ({
    package: folder,
    name: join(name, path),
    installed: [
      ...(WITHOUT_KYSELY.includes(folder) ? [] : ['kysely']),
      ...(DEPENDENCIES[folder] ?? []),
      ...(DRIVERS[path.slice(2)] ?? []),
    ],
  }))
})

function link(folder: string, name: string): void {
  const found = [join(ROOT, 'test'), ROOT].map((from) => join(from, 'node_modules', name)).find(existsSync)
  if (found === undefined) throw new Error(`${name} is not installed in the workspace.`)
  const path = join(folder, 'node_modules', name)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(found, path)
}

/** Our own packages are copied: behind a link the compiler would find every driver of the workspace. */
function newProject({ name, installed }: Entry): string {
  const folder = mkdtempSync(join(tmpdir(), 'durably-entry-'))
  for (const each of PACKAGES) {
    const [from, to] = [join(ROOT, 'packages', each), join(folder, 'node_modules', manifest(each).name)]
    if (!existsSync(join(from, 'dist'))) throw new Error(`${each} is not built: run \`npm run build\``)
    cpSync(join(from, 'package.json'), join(to, 'package.json'))
    cpSync(join(from, 'dist'), join(to, 'dist'), { recursive: true, filter: (path) => !path.includes('browser') })
  }
  for (const each of ['@types/node', ...installed]) link(folder, each)
  for (const extension of FORMATS) {
    writeFileSync(
      join(folder, `program.${extension}`),
      `import * as entry from '${name}'\nexport const names = entry\n`,
    )
  }
  writeFileSync(join(folder, 'package.json'), '{ "name": "app", "private": true }')
  return folder
}

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  noEmit: true,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  types: ['node'],
}

/** Kysely and the declarations of the language are read once for all programs. */
const read = new Map<string, ts.SourceFile | undefined>()

/** What the compiler says of the program and of our declarations; those of other packages are not ours to fix. */
function typeErrors(folder: string, { name }: Entry): readonly string[] {
  const lib = ['lib.es2022.d.ts', ...(name.endsWith('/sqlocal') ? ['lib.dom.d.ts'] : [])]
  const options = { ...OPTIONS, lib, typeRoots: [join(folder, 'node_modules', '@types')] }
  const host = ts.createCompilerHost(options)
  const getSourceFile = host.getSourceFile.bind(host)
  host.getSourceFile = (path, ...rest) => {
    if (path.startsWith(folder)) return getSourceFile(path, ...rest)
    if (!read.has(path)) read.set(path, getSourceFile(path, ...rest))
    return read.get(path)
  }
  host.getCurrentDirectory = () => folder
  const files = FORMATS.map((extension) => join(folder, `program.${extension}`))
  const program = ts.createProgram({ rootNames: files, options, host })
  const own = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(folder))
  expect(own.length).toBeGreaterThan(files.length)
  return own
    .flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])
    .map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
}

describe('each entry type-checks without skipLibCheck, with nothing installed but its own driver', () => {
  const folders: string[] = []
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })

  it.each(inLane(ENTRIES, ({ package: folder }) => !PASSED_ON.includes(folder)))(
    '$name',
    (entry) => {
      const folder = newProject(entry)
      folders.push(folder)
      expect(typeErrors(folder, entry)).toEqual([])
    },
    60_000,
  )
})
