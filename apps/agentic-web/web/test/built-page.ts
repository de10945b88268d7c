import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const VITE = join(createRequire(import.meta.url).resolve('vite/package.json'), '../bin/vite.js')
const WEB = join(import.meta.dirname, '..')

/** Builds the page from the sources of the workspace, into that folder or a new one, and says where it is. */
export async function buildPage(given?: string): Promise<string> {
  const folder = given ?? (await mkdtemp(join(tmpdir(), 'agentic-web-')))
  const argv = [VITE, 'build', WEB, '--outDir', folder, '--emptyOutDir', '--logLevel', 'warn']
  // In a process of its own: the NODE_ENV of tests would make it a development build.
  await promisify(execFile)(process.execPath, argv, { cwd: WEB, env: { ...process.env, NODE_ENV: 'production' } })
  return folder
}
