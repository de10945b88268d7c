import type { TestProject } from 'vitest/node'
import type { Assets } from '../src/assets'
import { buildPage } from '../ui/build'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly assets: Assets
  }
}

/** Builds the page once for all test files. */
export async function setup(project: TestProject): Promise<void> {
  project.provide('assets', await buildPage('source'))
}
