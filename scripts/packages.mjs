import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { pnpm, ROOT } from './pnpm.mjs'

/** Where the packed packages are left: the packaging tests install from here. */
export const PACKED = join(ROOT, '.tmp', 'packed')

const { resolve } = createRequire(join(ROOT, 'test', 'package.json'))
const load = (name) => import(pathToFileURL(resolve(name)).href)

/** Packs every published package as it would go to the registry. */
export async function packAll() {
  rmSync(PACKED, { recursive: true, force: true })
  return pnpm(['--filter', './packages/*', 'pack', '--pack-destination', PACKED], { quiet: true })
}

/** What browsers alone load has no CJS. */
const FOR_PAGES = './page'

/** To be called, not imported: it has no types. */
const PROGRAM = 'coji-durably-cli-'

/** Subpaths do not exist for the module resolution of Node 10; no supported Node uses it. */
const UNUSED = ['node10']
const UNUSED_BY_PAGES = [...UNUSED, 'node16-cjs']

/** In this process: most of what a command of its own takes for each package is the start of a compiler. */
async function check(tarball) {
  const data = readFileSync(join(PACKED, tarball))
  const problems = [...(await problemsOfManifest(data)), ...(await problemsOfTypes(data, !tarball.startsWith(PROGRAM)))]
  for (const problem of problems) process.stdout.write(`${tarball}: ${problem}\n`)
  return problems.length === 0
}

async function problemsOfManifest(data) {
  const { publint } = await load('publint')
  const { formatMessage } = await load('publint/utils')
  const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength)
  const { messages, pkg } = await publint({ pack: { tarball }, level: 'warning', strict: true })
  return messages.map((message) => formatMessage(message, pkg))
}

async function problemsOfTypes(data, hasTypes) {
  const { checkPackage, createPackageFromTarballData } = await load('@arethetypeswrong/core')
  const { types, problems } = await checkPackage(createPackageFromTarballData(new Uint8Array(data)))
  if (!types) return hasTypes ? ['it has no types'] : []
  const unusedBy = ({ entrypoint }) => (entrypoint === FOR_PAGES ? UNUSED_BY_PAGES : UNUSED)
  return problems
    .filter((problem) => !unusedBy(problem).includes(problem.resolutionKind))
    .map((problem) => JSON.stringify(problem))
}

/** Lints each tarball: what users get, not what lies in the folder. */
export async function checkPackages() {
  const results = []
  for (const tarball of readdirSync(PACKED).sort()) results.push(await check(tarball))
  return results.length > 0 && results.every(Boolean) ? 0 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await packAll()) || (await checkPackages())
