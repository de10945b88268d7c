import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sqlocal from 'sqlocal/vite'
import { build, preview, type PreviewServer } from 'vite'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of the page. */
    readonly tabsUrl: string
  }
}

/** What SQLite needs for the file system of the browser. */
const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

/** Builds the page of the tabs once for all test files, and serves it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'durably-tabs-site-'))
  const server = await serve(folder)
  project.provide('tabsUrl', server.resolvedUrls?.local[0] ?? '')
  return async () => {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Built: the client of the dev server loads a tab again that was frozen for long. */
async function serve(outDir: string): Promise<PreviewServer> {
  const shared = { configFile: false, root: join(import.meta.dirname, 'page'), logLevel: 'error' } as const
  await build({
    ...shared,
    plugins: [sqlocal()],
    resolve: { conditions: ['@coji/durably-source', 'module', 'browser', 'development|production'] },
    build: { outDir, target: 'es2022', rolldownOptions: { input: [join(shared.root, 'index.html')] } },
  })
  return preview({ ...shared, build: { outDir }, preview: { host: '127.0.0.1', port: 0, headers: ISOLATED } })
}
