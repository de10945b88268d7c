import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import type { Options } from 'tsup'

const SOURCE_CONDITION = '@coji/durably-source'

interface ExportTarget {
  readonly [SOURCE_CONDITION]: string
  readonly import: { readonly default: string }
}

/** One entry per path in the `exports` of the package that is built, so that the list exists once. What is below `src`, that is. */
function entriesOf(manifestPath: string): Record<string, string> {
  const { exports } = JSON.parse(readFileSync(manifestPath, 'utf8')) as {
    exports: Record<string, ExportTarget | string>
  }
  const targets = Object.values(exports)
    .filter((target) => typeof target !== 'string')
    .filter((target) => target[SOURCE_CONDITION].startsWith('./src/'))
  return Object.fromEntries(targets.map((target) => [basename(target.import.default, '.js'), target[SOURCE_CONDITION]]))
}

/** Below the package, so that what they import is found. */
const DECLARATIONS = join('.tmp', 'declarations')

/**
 * The declarations of the entries, file by file, for the bundler of declarations: it would have them from the older compiler,
 * which takes ten times as long, and for each format again.
 */
function emitDeclarations(entries: Readonly<Record<string, string>>): Record<string, string> {
  rmSync(DECLARATIONS, { recursive: true, force: true })
  mkdirSync(DECLARATIONS, { recursive: true })
  const project = join(DECLARATIONS, 'tsconfig.json')
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: '../../src',
    outDir: '.',
    // The declarations of other packages come from their build, not from their sources.
    customConditions: [],
  }
  const files = Object.values(entries).map((entry) => join('..', '..', entry))
  writeFileSync(project, JSON.stringify({ extends: '../../tsconfig.json', include: [], files, compilerOptions }))
  const manifest = createRequire(join(process.cwd(), 'package.json')).resolve('@typescript/native/package.json')
  execFileSync(process.execPath, [join(dirname(manifest), 'bin', 'tsc'), '-p', project], { stdio: 'inherit' })
  const emitted = (entry: string) => join(DECLARATIONS, entry.replace(/^\.\/src\//, '').replace(/\.tsx?$/, '.d.ts'))
  return Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, emitted(entry)]))
}

/** How every published package is built: ESM and CJS with declarations, dependencies left alone. */
export function libraryPreset(): Options {
  const entry = entriesOf('package.json')
  return {
    entry,
    format: ['esm', 'cjs'],
    target: 'es2022',
    platform: 'neutral',
    // Both formats share chunks between entries: a class exported twice would break `instanceof`.
    splitting: true,
    sourcemap: true,
    clean: true,
    treeshake: false,
    // The bundler itself sets an option that is deprecated.
    dts: { entry: emitDeclarations(entry), compilerOptions: { customConditions: [], ignoreDeprecations: '6.0' } },
  }
}
