import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { buildDemo, serveDemo } from './vite-process'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly demoUrl: string
    readonly demoFolder: string
  }
}

/** Builds the demo once for all test files and serves it as `vite preview` does. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'durably-browser-demo-'))
  await buildDemo(folder)
  const site = await serveDemo(['preview', '--outDir', folder])
  project.provide('demoUrl', site.url)
  project.provide('demoFolder', folder)
  return async () => {
    await site.close()
    await rm(folder, { recursive: true })
  }
}
