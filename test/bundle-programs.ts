import { build, type Plugin } from 'esbuild'

/** Drivers are loaded from where they are installed; some have a part in native code. */
const DRIVERS = ['better-sqlite3', '@libsql/client', '@libsql/kysely-libsql', 'pg']

export type { Plugin as BundlePlugin } from 'esbuild'

interface BundleOptions {
  /** Packages that are loaded from where they are installed as well. */
  readonly installed?: readonly string[]
  readonly plugins?: readonly Plugin[]
}

/**
 * Bundles programs from the sources, as modules that plain Node starts quickly: tests start hundreds of them. `entries` are
 * paths by name.
 */
export async function bundlePrograms(
  entries: Readonly<Record<string, string>>,
  outDir: string,
  { installed = [], plugins = [] }: BundleOptions = {},
): Promise<void> {
  await build({
    entryPoints: { ...entries },
    outdir: outDir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['@coji/durably-source'],
    external: [...DRIVERS, ...installed],
    plugins: [...plugins],
    logLevel: 'error',
  })
}
