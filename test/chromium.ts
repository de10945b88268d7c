import type { LaunchOptions } from 'playwright'
import { findBrowser, requireBrowser } from '../scripts/browser.mjs'

const QUIET = [
  '--no-sandbox', // root, as on CI, has no other way
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** How every test starts its browser; says how to get one where there is none. */
export function chromiumOptions(): LaunchOptions {
  return { executablePath: requireBrowser(), headless: true, args: QUIET }
}

/** The same for configurations, which are read before it is known whether a browser is needed at all. */
export function chromiumOptionsIfAny(): LaunchOptions {
  const executablePath = findBrowser()
  return { ...(executablePath !== null && { executablePath }), headless: true, args: QUIET }
}

/** As the global set-up of a project: one clear message instead of a failure in each file. */
export function setup(): void {
  requireBrowser()
}
