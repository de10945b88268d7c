import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { pnpm } from './pnpm.mjs'

const FLAGS = ['--dry-run', '--no-git-checks', '--access', 'public']

/** Everything that publishing does, but the last step. */
export function publishDry(options) {
  return pnpm(['--recursive', '--filter', './packages/*', 'publish', ...FLAGS], options)
}

if (argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await publishDry()
