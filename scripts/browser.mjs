import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT, run } from './pnpm.mjs'
import { onPath, withApt } from './system.mjs'

const SYSTEM_NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome', 'msedge']
const SYSTEM_PATHS = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe',
]

/** Where a Chromium is: the one of CHROMIUM_PATH, else one of the system, else playwright's own; else null. */
export function findBrowser() {
  const named = process.env.CHROMIUM_PATH
  if (named !== undefined && named !== '') {
    if (existsSync(named)) return named
    throw new Error(`CHROMIUM_PATH is ${named}, and there is no such file.`)
  }
  return SYSTEM_NAMES.map(onPath).find(Boolean) ?? [...SYSTEM_PATHS, ofPlaywright()].find(existsSync) ?? null
}

const SHELL_NAMES = ['chromium-headless-shell', 'chrome-headless-shell']

/**
 * Where a Chromium without its user interface is, which takes half the processor time for the same page; null where there
 * is none, or where CHROMIUM_PATH names the one to take.
 */
export function findHeadlessShell() {
  if ((process.env.CHROMIUM_PATH ?? '') !== '') return null
  return SHELL_NAMES.map(onPath).find(Boolean) ?? null
}

const FIREFOX_NAMES = ['firefox-esr', 'firefox']
const FIREFOX_ON_A_MAC = '/Applications/Firefox.app/Contents/MacOS/firefox'

/** Where a Firefox is: the one of FIREFOX_PATH, else one of the system; else null, and its tests are skipped. */
export function findFirefox() {
  const named = process.env.FIREFOX_PATH
  if (named !== undefined && named !== '') {
    if (existsSync(named)) return named
    throw new Error(`FIREFOX_PATH is ${named}, and there is no such file.`)
  }
  return FIREFOX_NAMES.map(onPath).find(Boolean) ?? [FIREFOX_ON_A_MAC].find(existsSync) ?? null
}

/** As `findBrowser`, for those who cannot go on without one. */
export function requireBrowser() {
  const found = findBrowser()
  if (found === null) throw new Error(HOW_TO_GET_ONE)
  return found
}

export const HOW_TO_GET_ONE = [
  'The browser tests need a Chromium, and none was found. Either',
  '- install one: apt-get install chromium (Debian, as root), or Chrome from its site, or',
  '- let playwright bring one: npx playwright install chromium, or',
  '- name one: CHROMIUM_PATH=/path/to/chrome npm test',
].join('\n')

/** Makes sure that there are browsers, installing them where that is possible. Answers an exit code. */
export async function installBrowser() {
  const code = await installChromium()
  if (code !== 0) return code
  if (findHeadlessShell() === null) await withApt('chromium-headless-shell')
  if (findFirefox() === null) await withApt('firefox-esr')
  return code
}

async function installChromium() {
  if (findBrowser() !== null) return 0
  process.stdout.write('No Chromium found; installing one …\n')
  for (const install of [() => withApt('chromium'), withPlaywright]) {
    await install()
    if (findBrowser() !== null) return 0
  }
  process.stdout.write(`${HOW_TO_GET_ONE}\n`)
  return 1
}

async function withPlaywright() {
  await run(process.execPath, [playwrightCli(), 'install', 'chromium'])
}

const requireFromTests = createRequire(join(ROOT, 'test', 'package.json'))

function playwrightCli() {
  return join(requireFromTests.resolve('playwright/package.json'), '..', 'cli.js')
}

function ofPlaywright() {
  const script = "process.stdout.write(require('playwright').chromium.executablePath())"
  try {
    return execFileSync(process.execPath, ['-e', script], { cwd: join(ROOT, 'test'), encoding: 'utf8' })
  } catch {
    return ''
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await installBrowser()
