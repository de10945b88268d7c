import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { type BundlePlugin, bundlePrograms } from '../../../test/bundle-programs'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where the bundles of the command and of an application are. */
    readonly programs: string
  }
}

/** Below the package, so that the bundles find its drivers. */
const FOLDER = fileURLToPath(new URL(`../node_modules/.cache/durably-cli/${process.pid}`, import.meta.url))

const PROGRAMS = { durably: '../src/durably.ts', worker: './programs/worker.ts' } as const

const INSTALLED = ['commander', '@hono/node-server', '@modelcontextprotocol/server']

/** The built page of the dashboard has tests of its own. */
function smallPage(): BundlePlugin {
  const assets = { 'index.html': { type: 'text/html', text: '<html><head></head>the page</html>' } }
  const contents = `export const BUILT_ASSETS = ${JSON.stringify(assets)}`
  return { name: 'small-page', setup: ({ onLoad }) => onLoad({ filter: /built-assets\.ts$/ }, () => ({ contents })) }
}

/** Bundles them from the sources, once for all files of tests. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const paths = Object.entries(PROGRAMS).map(([name, path]) => [name, fileURLToPath(new URL(path, import.meta.url))])
  await bundlePrograms(Object.fromEntries(paths), FOLDER, { installed: INSTALLED, plugins: [smallPage()] })
  project.provide('programs', FOLDER)
  return () => rm(FOLDER, { recursive: true, force: true })
}
