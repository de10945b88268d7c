import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { ROOT } from './pnpm.mjs'
import { blockOf, withBlock } from './written-block.mjs'

const LIMITS = join(ROOT, 'size-limits.json')
/** What another version of the compressor makes of the same. */
const TOLERANCE = 0.005

/** What an application cannot do without: it may only become smaller. */
const LEAST = 'createDurably, defineJob of packages/core/dist/index.js'

/** The build for pages without a bundler: its files are loaded as they are. */
const BUILT = 'packages/durably/dist/browser/'
const BUILT_FILES = {
  'durably.js': 'durably, its plugins, `sqlocal()`, Kysely. The one to import',
  'worker.js': 'the worker that holds the database',
  'sqlite3.js': "SQLite's own script, loaded by the worker",
  'sqlite3.wasm': 'SQLite',
  'sqlite3-opfs-async-proxy.js': 'its access to the file system',
}
const BUILT_PAGE = join(ROOT, 'examples', 'browser-plain', 'README.md')

/** The size of `a, b of entry`: what who takes these names alone would load, bundled, minified, gzipped. */
async function measure(wanted) {
  const [names, entry = ''] = wanted.includes(' of ') ? wanted.split(' of ') : ['*', wanted]
  if (entry.startsWith(BUILT)) return gzipped(readFileSync(join(ROOT, entry)))
  const list = names === '*' ? names : `{ ${names} }`
  const { build } = createRequire(join(ROOT, 'test', 'package.json'))('esbuild')
  const result = await build({
    absWorkingDir: ROOT,
    stdin: { contents: `export ${list} from './${entry}'`, resolveDir: ROOT },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    external: ['kysely', '@libsql/client', '@libsql/kysely-libsql', 'better-sqlite3', 'pg', 'sqlocal', 'sqlocal/*'],
    write: false,
    logLevel: 'error',
  })
  return gzipped(result.outputFiles[0].contents)
}

function gzipped(contents) {
  return gzipSync(contents, { level: 9 }).length
}

function builtTable() {
  const rows = Object.entries(BUILT_FILES).map(([name, what]) => {
    const contents = readFileSync(join(ROOT, BUILT, name))
    return `| \`${name}\` | ${inKilobytes(contents.length)} | ${inKilobytes(gzipped(contents))} | ${what} |`
  })
  return ['| file | size | gzipped | |', '|---|---|---|---|', ...rows].join('\n')
}

function inKilobytes(bytes) {
  return `${Math.round(bytes / 1000)} kB`
}

/** A page rounds, and need not be written anew for each commit. */
const PAGE_TOLERANCE = 0.05

/** Whether the sizes on a page are no longer those of today. */
export function isOutdated(written, today) {
  const [before, now] = [written, today].map((text) => [...text.matchAll(/(\d+) kB/g)].map(([, size]) => Number(size)))
  return before.length !== now.length || now.some((size, at) => Math.abs(size - before[at]) > 1 + size * PAGE_TOLERANCE)
}

/** The table for those who put the files on their host. */
function checkPage(update) {
  const page = readFileSync(BUILT_PAGE, 'utf8')
  const today = builtTable()
  if (update) writeFileSync(BUILT_PAGE, withBlock(page, 'sizes', today))
  else if (isOutdated(blockOf(page, 'sizes'), today)) return ['the sizes in examples/browser-plain/README.md']
  return []
}

/** Whether a size is over its limit by more than the tolerance. */
export function isTooLarge(bytes, limit) {
  return bytes > limit * (1 + TOLERANCE)
}

/** The limits that `--update` writes: the sizes of today, without growth of what may only become smaller. */
export function updatedLimits(limits, sizes) {
  return { ...sizes, [LEAST]: Math.min(sizes[LEAST], limits[LEAST]) }
}

/** Compares every entry of `size-limits.json` with its limit; `--update` writes the sizes of today. */
export async function checkSizes({ update = false } = {}) {
  const limits = JSON.parse(readFileSync(LIMITS, 'utf8'))
  const sizes = {}
  for (const entry of Object.keys(limits)) sizes[entry] = await measure(entry)
  const allowed = update ? updatedLimits(limits, sizes) : limits
  if (update) writeFileSync(LIMITS, `${JSON.stringify(allowed, null, 2)}\n`)
  const tooLarge = Object.keys(allowed).filter((entry) => isTooLarge(sizes[entry], allowed[entry]))
  for (const [entry, bytes] of Object.entries(sizes)) {
    const verdict = tooLarge.includes(entry) ? `TOO LARGE, the limit is ${allowed[entry]} + ${TOLERANCE * 100} %` : 'ok'
    process.stdout.write(`${entry}  ${bytes} bytes min+gzip  ${verdict}\n`)
  }
  const outdated = checkPage(update)
  for (const what of outdated) process.stdout.write(`${what}  OUTDATED\n`)
  if (tooLarge.length + outdated.length > 0)
    process.stdout.write(
      `Make it smaller. Growth of anything but "${LEAST}" can be accepted: node scripts/size.mjs --update\n`,
    )
  return tooLarge.length + outdated.length === 0 ? 0 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await checkSizes({ update: process.argv.includes('--update') })
}
