import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pnpm, ROOT, run } from './pnpm.mjs'

/** Where the packed packages are left: the packaging tests install from here. */
export const PACKED = join(ROOT, '.tmp', 'packed')

const TOOLS = join(ROOT, 'test', 'node_modules')
const PUBLINT = join(TOOLS, 'publint', 'src', 'cli.js')
const ATTW = join(TOOLS, '@arethetypeswrong', 'cli', 'dist', 'index.js')

/** Packs every published package as it would go to the registry. */
export async function packAll() {
  rmSync(PACKED, { recursive: true, force: true })
  return pnpm(['--filter', './packages/*', 'pack', '--pack-destination', PACKED], { quiet: true })
}

/** What browsers alone load has no CJS. */
const FOR_PAGES = 'page'

/** Subpaths do not exist for the module resolution of Node 10; no supported Node uses it. */
const PROFILES = [['--profile', 'node16', '--exclude-entrypoints', FOR_PAGES]]
const PROFILES_WITH_PAGE = [...PROFILES, ['--profile', 'esm-only', '--entrypoints', FOR_PAGES]]

async function check(tarball) {
  const path = join(PACKED, tarball)
  const published = await run(process.execPath, [PUBLINT, 'run', path, '--strict'], { quiet: true })
  const results = [published]
  for (const profile of tarball.includes('durably-dashboard-') ? PROFILES_WITH_PAGE : PROFILES) {
    const flags = [...profile, '--format', 'ascii', '--no-emoji']
    results.push(await run(process.execPath, [ATTW, path, ...flags], { quiet: true }))
  }
  return results.every((code) => code === 0)
}

/** Lints each tarball: what users get, not what lies in the folder. */
export async function checkPackages() {
  const results = []
  for (const tarball of readdirSync(PACKED).sort()) results.push(await check(tarball))
  return results.length > 0 && results.every(Boolean) ? 0 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await packAll()) || (await checkPackages())
