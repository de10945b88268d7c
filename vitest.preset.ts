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

type TestProject = ReturnType<typeof testProject>

/** Groups of projects run one after another: a browser wants the cores for itself, and so do those that measure time. */
export const GROUPS = { inBrowsers: 1, afterTheBuild: 2 } as const

/** What drives browsers, which is most of its load. */
export function inBrowsers(project: TestProject): TestProject {
  return inGroup(project, GROUPS.inBrowsers)
}

/** What needs packages as they are built: installs, and processes that it starts. */
export function afterTheBuild(project: TestProject): TestProject {
  return inGroup(project, GROUPS.afterTheBuild)
}

function inGroup(project: TestProject, groupOrder: number): TestProject {
  return { ...project, test: { ...project.test, sequence: { ...project.test?.sequence, groupOrder } } }
}
