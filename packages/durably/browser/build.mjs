import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { build } from 'esbuild'
import { licencesOf } from '../../../scripts/licences.mjs'

const PACKAGE = join(import.meta.dirname, '..')
const TARGET = join(PACKAGE, 'dist', 'browser')
const ENTRIES = ['index', 'plugins', 'sqlocal']
const BANNER = '/*! @coji/durably, MIT. The licences of what it contains are in THIRD-PARTY.txt beside this file. */'
// SQLite finds these by name beside the module that asks for them.
const BESIDE_SQLITE = ['sqlite3.wasm', 'sqlite3-opfs-async-proxy.js']

const reexports = ENTRIES.map((name) => `export * from '../${name}.js'`).join('\n')

/** Three modules instead of one: the page and SQLocal's worker load SQLite itself only when they open a database. */
const modules = {
  name: 'modules of the browser build',
  setup(build) {
    const from = (path) => ({ kind: 'import-statement', resolveDir: dirname(path), importer: path })
    const sqlocal = () => build.resolve('sqlocal', from(join(PACKAGE, 'package.json')))
    build.onResolve({ filter: /^entry:/ }, async ({ path }) => {
      if (path === 'entry:durably') return { path, namespace: 'entry' }
      const client = (await sqlocal()).path
      if (path === 'entry:worker') return { path: join(dirname(client), 'worker.js') }
      return { path: (await build.resolve('@sqlite.org/sqlite-wasm', { ...from(client), pluginData: 'itself' })).path }
    })
    build.onResolve({ filter: /^@sqlite\.org\/sqlite-wasm$/ }, ({ pluginData }) =>
      pluginData === 'itself' ? undefined : { path: './sqlite3.js', external: true },
    )
    build.onLoad({ filter: /^entry:durably$/, namespace: 'entry' }, () => ({
      contents: reexports,
      resolveDir: TARGET,
    }))
    build.onLoad({ filter: /sqlocal[\\/]dist[\\/]client\.js$/ }, ({ path }) => ({
      contents: workerNamed(readFileSync(path, 'utf8')),
    }))
  },
}

/** A static host does not guess extensions. */
function workerNamed(source) {
  const named = source.replace(/new URL\(\s*'\.\/worker'/, "new URL('./worker.js'")
  if (named === source) throw new Error('SQLocal no longer starts its worker from ./worker')
  return named
}

async function bundle() {
  const { metafile } = await build({
    absWorkingDir: PACKAGE,
    entryPoints: { durably: 'entry:durably', worker: 'entry:worker', sqlite3: 'entry:sqlite3' },
    outdir: TARGET,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    banner: { js: BANNER },
    metafile: true,
    logLevel: 'warning',
    plugins: [modules],
  })
  return Object.keys(metafile.inputs).filter((input) => !input.startsWith('entry:'))
}

rmSync(TARGET, { recursive: true, force: true })
mkdirSync(TARGET, { recursive: true })
const inputs = (await bundle()).map((input) => resolve(PACKAGE, input))
const sqlite = dirname(inputs.find((input) => /sqlite-wasm[\\/]dist[\\/]index\.mjs$/.test(input)) ?? '')
for (const name of BESIDE_SQLITE) copyFileSync(join(sqlite, name), join(TARGET, name))
writeFileSync(join(TARGET, 'THIRD-PARTY.txt'), licencesOf(inputs))
writeFileSync(join(TARGET, 'durably.d.ts'), `${reexports}\n`)
