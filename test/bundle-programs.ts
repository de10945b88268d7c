import { build } from 'esbuild'

/** Drivers are loaded from where they are installed; some have a part in native code. */
const DRIVERS = ['better-sqlite3', '@libsql/client', '@libsql/kysely-libsql', 'pg']

/**
 * Bundles programs from the sources, as modules that plain Node starts quickly: tests start hundreds of them. `entries` are
 * paths by name, `installed` the packages that are loaded from where they are installed as well.
 */
export async function bundlePrograms(
  entries: Readonly<Record<string, string>>,
  outDir: string,
  installed: readonly string[] = [],
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
    logLevel: 'error',
  })
}
