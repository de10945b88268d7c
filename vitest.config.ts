import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest-first.ts'
import { testProject } from './vitest.preset.ts'

const OF_THE_WORKSPACE = [
  'arrows',
  'browser',
  'changesets',
  'cut-proxy',
  'docs-blocks',
  'documented',
  'error-brands',
  'guarantees-page',
  'lifecycle-page',
  'links',
  'machine-paths',
  'postgres',
  'reference',
  'rooms',
  'runtimes',
  'scale',
  'second-node',
  'size',
  'sse-recipe',
  'summary',
]
const OF_THE_BUILD = ['docs', 'entry-types', 'exported-types', 'pack', 'smoke', 'demo-browser']

function workspaceProject(name: string, files: readonly string[]) {
  return testProject(
    name,
    files.map((file) => `test/${file}.test.ts`),
  )
}

export default defineConfig({
  test: {
    projects: [
      'packages/vitest.config.ts',
      'packages/*/vitest.config.ts',
      'packages/*/vitest.browser.config.ts',
      '{apps,examples}/*/vitest.config.ts',
      'benchmarks/vitest.config.ts',
      workspaceProject('workspace', OF_THE_WORKSPACE),
      ...OF_THE_BUILD.map((name) => workspaceProject(name, [name])),
    ],
    passWithNoTests: true,
    // Two more than there are cores: many tests wait for other processes, for leases, or for a browser. Four more gain nothing.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    teardownTimeout: 60_000,
  },
})
