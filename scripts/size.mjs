import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { ROOT } from './pnpm.mjs'

const LIMITS = join(ROOT, 'size-limits.json')
const TOLERANCE = 0.05

/** The size of an entry as a browser would load it: bundled, minified, gzipped. */
async function measure(entry) {
  const { build } = createRequire(join(ROOT, 'test', 'package.json'))('esbuild')
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    external: ['kysely', '@libsql/client', '@libsql/kysely-libsql', 'better-sqlite3', 'pg', 'sqlocal', 'sqlocal/*'],
    write: false,
    logLevel: 'error',
  })
  return gzipSync(result.outputFiles[0].contents, { level: 9 }).length
}

/** Whether a size is over its limit by more than the tolerance. */
export function isTooLarge(bytes, limit) {
  return bytes > limit * (1 + TOLERANCE)
}

/** Compares every entry of `size-limits.json` with its limit; `--update` writes the sizes of today. */
export async function checkSizes({ update = false } = {}) {
  const limits = JSON.parse(readFileSync(LIMITS, 'utf8'))
  const sizes = {}
  for (const entry of Object.keys(limits)) sizes[entry] = await measure(entry)
  if (update) writeFileSync(LIMITS, `${JSON.stringify(sizes, null, 2)}\n`)
  const tooLarge = Object.keys(limits).filter((entry) => !update && isTooLarge(sizes[entry], limits[entry]))
  for (const [entry, bytes] of Object.entries(sizes)) {
    const verdict = tooLarge.includes(entry) ? `TOO LARGE, the limit is ${limits[entry]} + 5 %` : 'ok'
    process.stdout.write(`${entry}  ${bytes} bytes min+gzip  ${verdict}\n`)
  }
  if (tooLarge.length > 0)
    process.stdout.write('Make it smaller, or accept the growth: node scripts/size.mjs --update\n')
  return tooLarge.length === 0 ? 0 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await checkSizes({ update: process.argv.includes('--update') })
}
