import { fileURLToPath } from 'node:url'
import { defineProject } from 'vitest/config'

const conditions = ['@coji/durably-source']

/** A vitest project whose workspace packages resolve to their sources. */
export function testProject(name: string, include: readonly string[] = ['src/**/*.test.ts', 'test/**/*.test.ts']) {
  return defineProject({
    resolve: { conditions: [...conditions, 'module', 'node', 'development|production'] },
    ssr: { resolve: { conditions: [...conditions, 'module', 'node', 'development|production'] } },
    test: {
      name,
      include: [...include],
      environment: 'node',
      restoreMocks: true,
      globalSetup: [fileURLToPath(new URL('./test/postgres-setup.ts', import.meta.url))],
    },
  })
}
