import { it } from 'vitest'
import type { SessionFiles } from '../tools/tool'
import { openSandbox, type Sandbox, type SandboxOptions, SandboxUnavailable } from './index'

/** As whom the tests of a machine run that are root themselves. */
const NOBODY = { uid: 65_534, gid: 65_534 }

export async function openTestSandbox(options: SandboxOptions = {}): Promise<Sandbox | null> {
  try {
    return await openSandbox({ ...(process.getuid?.() === 0 && { user: NOBODY }), ...options })
  } catch (error) {
    if (error instanceof SandboxUnavailable) return null
    throw error
  }
}

/** Where there can be none, the tests are one skipped test, whose reason is in `skipped.json`. */
export const sandboxOfTests = await openTestSandbox()
export const whereThereIsASandbox = (tests: () => void) => () =>
  sandboxOfTests === null ? it.runIf(false)('where there is a bubblewrap', () => {}) : tests()

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
