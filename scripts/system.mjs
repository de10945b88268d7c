import { spawnSync } from 'node:child_process'
import { run } from './pnpm.mjs'

/** A machine without a network says so soon, and nothing that is there goes for something new. */
const CAREFULLY = ['-o', 'Acquire::http::Timeout=20', '-o', 'Acquire::Retries=1', '--no-remove']

/** Installs a package of the system, where that is Debian and we may. */
export async function withApt(name) {
  if (process.getuid?.() !== 0 || !onPath('apt-get')) return
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  await run('apt-get', [...CAREFULLY, 'update'], { quiet: true, env })
  await run('apt-get', [...CAREFULLY, 'install', '-y', '--no-install-recommends', name], { quiet: true, env })
}

/** Where a program is; null when it is not on the PATH. */
export function onPath(name) {
  const { status, stdout } = spawnSync(process.platform === 'win32' ? 'where' : 'which', [name], { encoding: 'utf8' })
  return status === 0 ? stdout.split(/\r?\n/)[0] : null
}
