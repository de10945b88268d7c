import { spawnSync } from 'node:child_process'
import { run } from './pnpm.mjs'

/** Installs a package of the system, where that is Debian and we may. */
export async function withApt(name) {
  if (process.getuid?.() !== 0 || !onPath('apt-get')) return
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  await run('apt-get', ['update'], { quiet: true, env })
  await run('apt-get', ['install', '-y', '--no-install-recommends', name], { quiet: true, env })
}

/** Where a program is; null when it is not on the PATH. */
export function onPath(name) {
  const { status, stdout } = spawnSync(process.platform === 'win32' ? 'where' : 'which', [name], { encoding: 'utf8' })
  return status === 0 ? stdout.split(/\r?\n/)[0] : null
}
