import { filesBelow, fingerprint, isStamped, stamp } from './fingerprint.mjs'
import { pnpm } from './pnpm.mjs'

const FLAGS = ['install', '--frozen-lockfile', '--prefer-offline', '--reporter=append-only']

function inputs() {
  const isManifest = (path) => /(^|\/)package\.json$/.test(path)
  const isLock = (path) => ['pnpm-lock.yaml', 'pnpm-workspace.yaml', '.pnpmfile.cjs', '.npmrc'].includes(path)
  return fingerprint(filesBelow('', (path) => isManifest(path) || isLock(path)))
}

/** Installs the whole workspace exactly as locked; does nothing when that is how it stands. */
export async function installAll() {
  const wanted = inputs()
  if (isStamped('install-all', wanted)) return 0
  const code = await pnpm(FLAGS)
  // What an earlier install for the demo left unbuilt is built now.
  const built = code === 0 ? await pnpm(['rebuild', '--pending', '--recursive']) : code
  if (built === 0) stamp('install-all', wanted)
  return built
}

/**
 * Installs what a demo is built from, which `filter` names to pnpm. Scripts stay off: they would compile a database driver it does
 * not use. Those of the packages in `scripted` are run.
 */
export async function installDemo(demo, filter, scripted = []) {
  const wanted = inputs()
  const name = `install-${demo}`
  if (isStamped('install-all', wanted) || isStamped(name, wanted)) return 0
  const code = await pnpm([...FLAGS, '--ignore-scripts', ...filter])
  const built = code === 0 && scripted.length > 0 ? await pnpm(['rebuild', '--recursive', ...scripted]) : code
  if (built === 0) stamp(name, wanted)
  return built
}
