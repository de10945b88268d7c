import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, fingerprint, isStamped, stamp } from './fingerprint.mjs'
import { installDemo } from './install.mjs'
import { pnpm, ROOT, run } from './pnpm.mjs'

const ENTRY = 'apps/node-demo/dist/main.js'
const BUILT = ['core', 'storage-kysely', 'plugins', 'durably'].map((name) => `packages/${name}`)

function sources() {
  const isSource = (path) => /\/(package|tsconfig)\.json$|\/tsup\.config\.ts$|\/src\//.test(path)
  const below = [...BUILT, 'apps'].flatMap((folder) => filesBelow(folder, isSource))
  return fingerprint([...below, 'tsconfig.base.json', 'tsup.preset.ts', 'pnpm-lock.yaml'])
}

function isBuilt(wanted) {
  const outputs = [ENTRY, ...BUILT.map((folder) => `${folder}/dist/index.js`)]
  return isStamped('build-demo', wanted) && outputs.every((path) => existsSync(join(ROOT, path)))
}

async function build() {
  const wanted = sources()
  if (isBuilt(wanted)) return 0
  process.stdout.write('Building the packages and the demo …\n')
  const code = await pnpm(['--filter', '@coji/durably-node-demo...', 'run', 'build'], { quiet: true })
  if (code === 0) stamp('build-demo', wanted)
  return code
}

async function demo(args) {
  for (const prepare of [installDemo, build]) {
    const code = await prepare()
    if (code !== 0) return code
  }
  return run(process.execPath, [join(ROOT, ENTRY), ...args], { input: 'inherit', env: { CI: process.env.CI } })
}

process.exitCode = await demo(process.argv.slice(2))
