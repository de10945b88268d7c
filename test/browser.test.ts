import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { env, execPath, platform } from 'node:process'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOW_TO_GET_ONE } from '../scripts/browser.mjs'
import { ROOT } from './root'

const SCRIPT = join(ROOT, 'scripts', 'browser.mjs')

let folder = ''
let browser = ''
let empty = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'durably-browser-'))
  browser = join(folder, 'chromium')
  writeFileSync(browser, '#!/bin/sh\n')
  chmodSync(browser, 0o755)
  empty = join(folder, 'empty')
  mkdirSync(empty)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs Node with these variables on top of its own, and gives what it printed. */
function node(args: readonly string[], variables: Readonly<Record<string, string>>) {
  const child = spawnSync(execPath, args, { cwd: folder, encoding: 'utf8', env: { ...env, ...variables } })
  return { status: child.status, stdout: child.stdout, stderr: child.stderr }
}

/** What a function of the script answers, or the message of its error. */
function answerOf(
  name: 'findBrowser' | 'findFirefox' | 'findHeadlessShell' | 'requireBrowser',
  variables: Readonly<Record<string, string>>,
): string {
  const script = `import { ${name} } from '${pathToFileURL(SCRIPT)}'
    const attempt = () => { try { return String(${name}()) } catch (error) { return error.message } }
    process.stdout.write(attempt())`
  const { status, stdout, stderr } = node(['--input-type=module', '-e', script], variables)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
}

describe.each(['findBrowser', 'requireBrowser'] as const)('%s', (name) => {
  it('takes the browser of CHROMIUM_PATH', () => {
    expect(answerOf(name, { CHROMIUM_PATH: browser, PATH: empty })).toBe(browser)
  })

  it('takes no other when CHROMIUM_PATH names a file that is not there', () => {
    const missing = join(folder, 'nowhere', 'chrome')
    const variables = { CHROMIUM_PATH: missing, PATH: `${folder}${delimiter}${env['PATH'] ?? ''}` }
    expect(answerOf(name, variables)).toBe(`CHROMIUM_PATH is ${missing}, and there is no such file.`)
  })

  it('looks in the PATH when CHROMIUM_PATH is empty', () => {
    const variables = { CHROMIUM_PATH: '', PATH: `${folder}${delimiter}${env['PATH'] ?? ''}` }
    expect(answerOf(name, variables)).toBe(browser)
  })
})

describe('findFirefox', () => {
  it('takes the Firefox of FIREFOX_PATH, and no other when that is not there', () => {
    expect(answerOf('findFirefox', { FIREFOX_PATH: browser, PATH: empty })).toBe(browser)
    const missing = join(folder, 'nowhere', 'firefox')
    expect(answerOf('findFirefox', { FIREFOX_PATH: missing })).toBe(
      `FIREFOX_PATH is ${missing}, and there is no such file.`,
    )
  })

  it('looks in the PATH', () => {
    const firefox = join(folder, 'firefox-esr')
    writeFileSync(firefox, '#!/bin/sh\n', { mode: 0o755 })
    const variables = { FIREFOX_PATH: '', PATH: `${folder}${delimiter}${env['PATH'] ?? ''}` }
    expect(answerOf('findFirefox', variables)).toBe(join(folder, 'firefox-esr'))
  })
})

describe('findHeadlessShell', () => {
  it('looks in the PATH, unless CHROMIUM_PATH says which to take', () => {
    const shell = join(folder, 'chromium-headless-shell')
    writeFileSync(shell, '#!/bin/sh\n', { mode: 0o755 })
    const PATH = `${folder}${delimiter}${env['PATH'] ?? ''}`
    expect(answerOf('findHeadlessShell', { CHROMIUM_PATH: '', PATH })).toBe(shell)
    expect(answerOf('findHeadlessShell', { CHROMIUM_PATH: browser, PATH })).toBe('null')
    expect(answerOf('findHeadlessShell', { CHROMIUM_PATH: '', PATH: empty })).toBe('null')
  })
})

// Elsewhere the script knows places that no variable can hide.
if (platform === 'linux') {
  it('says how to get a browser where there is none', () => {
    const none = { CHROMIUM_PATH: '', FIREFOX_PATH: '', PATH: empty, PLAYWRIGHT_BROWSERS_PATH: empty }
    expect([answerOf('findBrowser', none), answerOf('findFirefox', none)]).toEqual(['null', 'null'])
    expect(answerOf('requireBrowser', none)).toBe(HOW_TO_GET_ONE)
  })
}

it('names three ways to a browser', () => {
  const [, ...ways] = HOW_TO_GET_ONE.split('\n')
  expect(ways).toEqual([
    expect.stringContaining('apt-get install chromium'),
    expect.stringContaining('npx playwright install chromium'),
    expect.stringContaining('CHROMIUM_PATH='),
  ])
})

describe('the script as a program', () => {
  it('installs nothing where there is a browser', () => {
    expect(node([SCRIPT], { CHROMIUM_PATH: browser, PATH: empty })).toEqual({ status: 0, stdout: '', stderr: '' })
  })

  it('fails on a CHROMIUM_PATH that is not there', () => {
    const variables = { CHROMIUM_PATH: join(folder, 'nowhere'), PATH: empty, PLAYWRIGHT_BROWSERS_PATH: empty }
    const { status, stderr } = node([SCRIPT], variables)
    expect(status).toBe(1)
    expect(stderr).toContain('and there is no such file.')
  })
})
