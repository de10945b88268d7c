import { defineConfig } from 'vitest/config'
import { testProject } from './vitest.preset.ts'

const OF_THE_WORKSPACE = [
  'arrows',
  'browser',
  'changesets',
  'cut-proxy',
  'docs-blocks',
  'documented',
  'guarantees-page',
  'lifecycle-page',
  'machine-paths',
  'postgres',
  'scale',
  'second-node',
  'size',
  'summary',
]
const AFTER_THE_BUILD = ['docs', 'pack', 'smoke', 'demo-browser']

function workspaceProject(name: string, files: readonly string[], groupOrder: number) {
  const project = testProject(
    name,
    files.map((file) => `test/${file}.test.ts`),
  )
  return { ...project, test: { ...project.test, sequence: { groupOrder } } }
}

export default defineConfig({
  test: {
    projects: [
      'packages/*/vitest.config.ts',
      'packages/*/vitest.browser.config.ts',
      '{apps,examples}/*/vitest.config.ts',
      workspaceProject('workspace', OF_THE_WORKSPACE, 0),
      // Installs and child processes: after the tests that measure time.
      ...AFTER_THE_BUILD.map((name, index) => workspaceProject(name, [name], index + 1)),
    ],
    passWithNoTests: true,
  },
})
