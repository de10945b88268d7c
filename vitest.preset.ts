import { fileURLToPath } from 'node:url'
import { defineProject } from 'vitest/config'
import { PATIENCE_MS } from './test/pace.ts'

const conditions = ['@coji/durably-source']

/** Where tests put their files and how fast their machine is, before anything else of a project begins. */
export const MACHINE_SETUP = fileURLToPath(new URL('./test/machine-setup.ts', import.meta.url))

/** Which server of Postgres tests use; it is started when the first one asks for it. */
export const POSTGRES_SETUP = fileURLToPath(new URL('./test/postgres-setup.ts', import.meta.url))

/** Ends what a file has begun, for those that share a process. */
const LEFTOVERS_SETUP = fileURLToPath(new URL('./test/leftovers-setup.ts', import.meta.url))

/** A test that hangs ends at last. None has to be quick: what it waits for comes late on a machine that is busy. */
export const PATIENCE = {
  testTimeout: 2 * PATIENCE_MS,
  hookTimeout: 2 * PATIENCE_MS,
  expect: { poll: { timeout: PATIENCE_MS } },
} as const

/** A vitest project whose workspace packages resolve to their sources. */
export function testProject(name: string, include: readonly string[] = ['src/**/*.test.ts', 'test/**/*.test.ts']) {
  return defineProject({
    resolve: { conditions: [...conditions, 'module', 'node', 'development|production'] },
    ssr: { resolve: { conditions: [...conditions, 'module', 'node', 'development|production'] } },
    test: {
      ...PATIENCE,
      name,
      include: [...include],
      environment: 'node',
      restoreMocks: true,
      globalSetup: [MACHINE_SETUP, POSTGRES_SETUP],
    },
  })
}

/** One whose files leave nothing behind in their process, and share it: most of their time is its start. */
export function sharingProject(name: string, include?: readonly string[]) {
  const project = testProject(name, include)
  return { ...project, test: { ...project.test, isolate: false, setupFiles: [LEFTOVERS_SETUP] } }
}
