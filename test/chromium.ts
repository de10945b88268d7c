import type { LaunchOptions } from 'playwright'
import { findBrowser, findHeadlessShell, requireBrowser } from '../scripts/browser.mjs'
import { SCALE } from './scale.ts'

const QUIET = [
  '--no-sandbox', // root, as on CI, has no other way
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** The quick lane takes the one that costs least, the full lane the one that people have. */
const findCheapest = () => (SCALE === 'quick' ? findHeadlessShell() : null)

/**
 * Most pages are gone before the optimised code of SQLite, which takes a second to make, has paid for itself; and what moves on a
 * page without a graphics card is drawn sixty times a second by a processor.
 */
const CHEAP = ['--js-flags=--liftoff-only', '--force-prefers-reduced-motion']
const FLAGS = SCALE === 'quick' ? [...QUIET, ...CHEAP] : QUIET

/**
 * How every test starts its browser; says how to get one where there is none. `isWhole`: without its user interface it
 * neither hides nor freezes a page.
 */
export function chromiumOptions({ isWhole = false } = {}): LaunchOptions {
  const executablePath = (isWhole ? null : findCheapest()) ?? requireBrowser()
  return { executablePath, headless: true, args: FLAGS }
}

/** The same for configurations, which are read before it is known whether a browser is needed at all. */
export function chromiumOptionsIfAny(): LaunchOptions {
  const executablePath = findCheapest() ?? findBrowser()
  return { ...(executablePath !== null && { executablePath }), headless: true, args: FLAGS }
}

/** As the global set-up of a project: one clear message instead of a failure in each file. */
export function setup(): void {
  if (findCheapest() === null) requireBrowser()
}
