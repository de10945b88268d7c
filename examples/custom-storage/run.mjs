import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { exec, pnpm } from '../../scripts/pnpm.mjs'

// The example as a reader has it: a folder of its own somewhere else, with nothing in it but the packed core.

const HERE = import.meta.dirname
const CORE = '@coji/durably-core'

const TSCONFIG = {
  compilerOptions: {
    target: 'ES2022',
    module: 'NodeNext',
    strict: true,
    exactOptionalPropertyTypes: true,
    rewriteRelativeImportExtensions: true,
    skipLibCheck: false,
    types: ['node'],
    // The compiler and Node's types are tools of this workspace; durably comes from the tarball.
    typeRoots: [join(HERE, 'node_modules', '@types')],
    rootDir: '.',
    outDir: 'built',
  },
  include: ['src', 'test'],
}

function must(code, what) {
  if (code !== 0) throw new Error(`${what} failed`)
}

function runIn(folder, command, args) {
  must(spawnSync(command, args, { cwd: folder, stdio: 'inherit' }).status, `${command} ${args.join(' ')}`)
}

async function packCore(folder) {
  // `npm test` has built it, and others are reading it.
  if (process.env['DURABLY_REPORT'] === undefined) {
    must(await exec(['turbo', 'run', 'build', `--filter=${CORE}`, '--output-logs=errors-only']), 'building core')
  }
  must(await pnpm(['--filter', CORE, 'pack', '--pack-destination', folder], { quiet: true }), 'packing core')
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'))
  if (tarball === undefined) throw new Error('core was packed nowhere')
  return join(folder, tarball)
}

const folder = mkdtempSync(join(tmpdir(), 'durably-custom-storage-'))
try {
  const tarball = await packCore(folder)
  for (const name of ['src', 'test']) cpSync(join(HERE, name), join(folder, name), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "name": "my-storage", "private": true, "type": "module" }')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  runIn(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline', tarball])
  const compiler = dirname(createRequire(import.meta.url).resolve('@typescript/native/package.json'))
  runIn(folder, process.execPath, [join(compiler, 'bin', 'tsc'), '-p', '.'])
  const tests = readdirSync(join(folder, 'test')).filter((name) => name.endsWith('.test.ts'))
  const built = tests.map((name) => join('built', 'test', name.replace(/ts$/, 'js')))
  runIn(folder, process.execPath, ['--test', '--test-reporter=dot', ...built])
} finally {
  rmSync(folder, { recursive: true, force: true })
}
