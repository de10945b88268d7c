import { onPath, withApt } from './system.mjs'

/** Makes sure that there is a bubblewrap, where that is possible; elsewhere the tests of the sandbox are skipped. */
export async function installSandbox() {
  if (process.platform === 'linux' && onPath('bwrap') === null) await withApt('bubblewrap')
  return 0
}
