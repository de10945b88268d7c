import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, fingerprint, isStamped, stamp } from './fingerprint.mjs'
import { installDemo } from './install.mjs'
import { pnpm, ROOT, run } from './pnpm.mjs'

const APP = '@coji/durably-node-demo'
const ENTRY = 'apps/node-demo/dist/main.js'
const BUILT = ['core', 'storage-kysely', 'plugins', 'durably'].map((name) => `packages/${name}`)

/** The dashboard is shown by the command, which takes longer to install and to build: only for those who want to see it. */
const LEAN = { name: 'demo', filter: ['--filter-prod', `${APP}...`], folders: BUILT, outputs: [] }
const WITH_DASHBOARD = {
  name: 'demo-dashboard',
  filter: ['--filter', `${APP}...`],
  folders: [...BUILT, ...['server', 'react', 'dashboard', 'cli'].map((name) => `packages/${name}`)],
  outputs: ['packages/cli/dist/durably.js', 'packages/dashboard/dist/index.js'],
}

function sources({ folders }) {
  const isSource = (path) => /\/(package|tsconfig)\.json$|\/tsup\.config\.ts$|\/(src|ui)\//.test(path)
  const below = [...folders, 'apps'].flatMap((folder) => filesBelow(folder, isSource))
  return fingerprint([...below, 'tsconfig.base.json', 'tsup.preset.ts', 'pnpm-lock.yaml'])
}

function isBuilt({ name, outputs }, wanted) {
  const all = [ENTRY, ...BUILT.map((folder) => `${folder}/dist/index.js`), ...outputs]
  return isStamped(`build-${name}`, wanted) && all.every((path) => existsSync(join(ROOT, path)))
}

async function build(kind) {
  const wanted = sources(kind)
  if (isBuilt(kind, wanted)) return 0
  process.stdout.write('Building the packages and the demo …\n')
  const code = await pnpm([...kind.filter, 'run', 'build'], { quiet: true })
  if (code === 0) stamp(`build-${kind.name}`, wanted)
  return code
}

async function demo(args) {
  const kind = args.includes('--dashboard') ? WITH_DASHBOARD : LEAN
  for (const prepare of [() => installDemo(kind.name, kind.filter), () => build(kind)]) {
    const code = await prepare()
    if (code !== 0) return code
  }
  return run(process.execPath, [join(ROOT, ENTRY), ...args], { input: 'inherit', env: { CI: process.env.CI } })
}

process.exitCode = await demo(process.argv.slice(2))
