import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest-first.ts'
import { SCALE } from './test/scale.ts'
import { IN_BROWSERS } from './packages/durably/vitest.browser.config.ts'
import { sharingProject, testProject } from './vitest.preset.ts'

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
  'leftovers',
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

/** They need nothing but Node and databases. As one project, what they import is transformed once, and loaded once by a process. */
const PACKAGES = ['core', 'plugins', 'cluster', 'server', 'storage-kysely', 'durably']

/** In the full lane these look at how long something takes: each has the machine for itself, when all others are done. */
const MEASURED =
  SCALE === 'full'
    ? [
        'packages/cluster/test/many.test.ts',
        'packages/storage-kysely/test/search.test.ts',
        'packages/storage-kysely/test/postgres/search.test.ts',
      ]
    : []

/** It moves all timers of its process by weeks, also those that another file has left there. */
const OF_TIMERS = ['packages/core/src/base/environment.test.ts']

function ofPackages() {
  const project = sharingProject(
    'packages',
    PACKAGES.flatMap((name) => ['src', 'test'].map((folder) => `packages/${name}/${folder}/**/*.test.ts`)),
  )
  const inBrowsers = IN_BROWSERS.map((files) => `packages/durably/${files}`)
  return {
    ...project,
    test: { ...project.test, exclude: [...inBrowsers, ...OF_TIMERS, ...MEASURED] },
  }
}

function measured() {
  const project = sharingProject('measured', MEASURED)
  return { ...project, test: { ...project.test, maxWorkers: 1, sequence: { groupOrder: 1 } } }
}

function filesOf(names: readonly string[]) {
  return names.map((name) => `test/${name}.test.ts`)
}

export default defineConfig({
  test: {
    projects: [
      ofPackages(),
      measured(),
      testProject('timers', OF_TIMERS),
      'packages/*/vitest.config.ts',
      'packages/*/vitest.browser.config.ts',
      '{apps,examples}/*/vitest.config.ts',
      'benchmarks/vitest.config.ts',
      sharingProject('workspace', filesOf(OF_THE_WORKSPACE)),
      sharingProject('build', filesOf(OF_THE_BUILD)),
    ],
    passWithNoTests: true,
    // Two more than there are cores: many tests wait for other processes, for leases, or for a browser. Four more gain nothing.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    teardownTimeout: 60_000,
  },
})
