import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, it } from 'vitest'
import { findFirefox } from '../../../../scripts/browser.mjs'
import { Marionette } from './marionette'

/** Playwright speaks to a Firefox of its own only; these speak to the one of the system. */
const FIREFOX = findFirefox()

/** Tests that need one: where there is none they are one skipped test, whose reason is in `skipped.json`. */
export function describeWithFirefox(name: string, tests: () => void): void {
  const isThere = FIREFOX !== null
  describe(name, isThere ? tests : () => it.runIf(isThere)('where there is a Firefox', () => {}))
}

const PREFERENCES: Readonly<Record<string, boolean | number | string>> = {
  'marionette.port': 0,
  'app.normandy.enabled': false,
  'browser.sessionstore.resume_from_crash': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'http://127.0.0.1:9/',
  'toolkit.startup.max_resumed_crashes': -1,
}

/** Where Firefox says on which port it listens. */
const PORT_FILE = 'MarionetteActivePort'

/** A Firefox with a profile of its own. */
export interface FirefoxProcess {
  readonly driver: Marionette
  /** As a crash or a power cut ends it: nothing in it hears of that. */
  kill(): Promise<void>
}

export async function launchFirefox(profile: string): Promise<FirefoxProcess> {
  mkdirSync(profile, { recursive: true })
  rmSync(join(profile, PORT_FILE), { force: true })
  const lines = Object.entries(PREFERENCES).map((entry) => `user_pref(${entry.map((part) => JSON.stringify(part))});`)
  writeFileSync(join(profile, 'user.js'), lines.join('\n'))
  const args = ['--headless', '--marionette', '--no-remote', '--profile', profile]
  const child = spawn(FIREFOX ?? '', args, { detached: true, stdio: 'ignore' })
  const kill = () => killGroup(child)
  // Tests that are given up leave no browser behind.
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  try {
    const driver = await Marionette.connect(await portOf(profile, child))
    return { driver, kill: () => end(child, driver) }
  } catch (error) {
    kill()
    throw error
  }
}

async function portOf(profile: string, child: ChildProcess): Promise<number> {
  const file = join(profile, PORT_FILE)
  while (child.exitCode === null) {
    const port = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0
    if (port > 0) return port
    await pause(50)
  }
  throw new Error(`Firefox ended with ${child.exitCode} before it listened.`)
}

async function end(child: ChildProcess, driver: Marionette): Promise<void> {
  driver.close()
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  killGroup(child)
  await ended
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
