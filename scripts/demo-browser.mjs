import { parseArgs } from 'node:util'
import { join } from 'node:path'
import { installDemo } from './install.mjs'
import { pnpm, ROOT, run } from './pnpm.mjs'

const APP = '@coji/durably-browser-demo'

const HELP = `npm run demo:browser -- [options]

Serves the demo in a browser and prints its address.

  --port <number>  the port to listen on; without it the first free one from 5173 (with --preview: 4173)
  --preview        build for production and serve that
  --help           show this
`

function readOptions(args) {
  const options = { port: { type: 'string' }, preview: { type: 'boolean' }, help: { type: 'boolean' } }
  const { values } = parseArgs({ args, options })
  const { port } = values
  if (port !== undefined && !(/^\d+$/.test(port) && Number(port) > 0 && Number(port) < 65_536)) {
    throw new Error(`--port takes a number from 1 to 65535, not ${port}.`)
  }
  return values
}

async function build() {
  process.stdout.write('Building the packages and the demo …\n')
  return pnpm(['--filter', `${APP}...`, 'run', 'build'], { quiet: true })
}

/** The development server takes the packages from their sources: there is nothing to build. */
async function demo({ port, preview = false }) {
  for (const prepare of [() => installDemo('demo-browser', ['--filter', `${APP}...`]), ...(preview ? [build] : [])]) {
    const code = await prepare()
    if (code !== 0) return code
  }
  const app = join(ROOT, 'apps/browser-demo')
  const vite = join(app, 'node_modules/vite/bin/vite.js')
  const listen = port === undefined ? [] : ['--port', port, '--strictPort']
  return run(process.execPath, [vite, ...(preview ? ['preview', app] : [app]), ...listen], { input: 'inherit' })
}

async function main(args) {
  try {
    const options = readOptions(args)
    if (options.help !== true) return await demo(options)
    process.stdout.write(HELP)
    return 0
  } catch (error) {
    process.stderr.write(`${error.message}\n`)
    return 1
  }
}

process.exitCode = await main(process.argv.slice(2))
