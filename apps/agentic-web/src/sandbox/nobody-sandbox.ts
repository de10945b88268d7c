import { it } from 'vitest'
import { SCALE } from '../../../../test/scale'
import type { SessionFiles } from '../tools/tool'
import { openSandbox, type Sandbox, type SandboxOptions, SandboxUnavailable } from './index'

/** As whom the tests of a machine run that are root themselves. */
export const USER_OF_TESTS = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : null

export async function openTestSandbox(options: SandboxOptions = {}): Promise<Sandbox | null> {
  try {
    return await openSandbox({ ...(USER_OF_TESTS !== null && { user: USER_OF_TESTS }), ...options })
  } catch (error) {
    if (error instanceof SandboxUnavailable) return null
    throw error
  }
}

/**
 * Where there can be none, the tests are one skipped test, whose reason is in `skipped.json`. The full lane skips one of another
 * name, which has no reason there and fails it, until somebody writes down why a machine may go without.
 */
const SKIPPED = { quick: 'where there is a bubblewrap', full: 'where there is a bubblewrap, in the full lane' }

export const sandboxOfTests = await openTestSandbox()
export const whereThereIsASandbox = (tests: () => void) => () =>
  sandboxOfTests === null ? it.runIf(false)(SKIPPED[SCALE], () => {}) : tests()

/** Files that are nowhere but here. */
export function filesOf(files: Map<string, string>): SessionFiles {
  return {
    list: async () => [...files].map(([path, text]) => ({ path, size: Buffer.byteLength(text) })),
    read: async (path) => {
      const text = files.get(path)
      return text === undefined ? null : Buffer.from(text)
    },
    write: async (path, bytes) => void files.set(path, Buffer.from(bytes).toString('utf8')),
    remove: async (path) => void files.delete(path),
  }
}
