import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Options } from 'tsup'

const SOURCE_CONDITION = '@coji/durably-source'

interface ExportTarget {
  readonly [SOURCE_CONDITION]: string
  readonly import: { readonly default: string }
}

/** One entry per path in the `exports` of the package that is built, so that the list exists once. */
function entriesOf(manifestPath: string): Record<string, string> {
  const { exports } = JSON.parse(readFileSync(manifestPath, 'utf8')) as {
    exports: Record<string, ExportTarget | string>
  }
  const targets = Object.values(exports).filter((target) => typeof target !== 'string')
  return Object.fromEntries(targets.map((target) => [basename(target.import.default, '.js'), target[SOURCE_CONDITION]]))
}

/** How every published package is built: ESM and CJS with declarations, dependencies left alone. */
export function libraryPreset(): Options {
  return {
    entry: entriesOf('package.json'),
    format: ['esm', 'cjs'],
    target: 'es2022',
    platform: 'neutral',
    // Both formats share chunks between entries: a class exported twice would break `instanceof`.
    splitting: true,
    sourcemap: true,
    clean: true,
    treeshake: false,
    // The declarations of other packages come from their build, not from their sources. The bundler itself sets an option
    // that is deprecated.
    dts: { compilerOptions: { customConditions: [], ignoreDeprecations: '6.0' } },
  }
}
