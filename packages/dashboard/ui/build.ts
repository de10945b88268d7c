import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { build } from 'vite'
import type { Asset, Assets } from '../src/assets'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/** Builds the page and reads what came of it. `source`: from the sources of the workspace. */
export async function buildPage(mode: 'production' | 'source'): Promise<Assets> {
  const outDir = await mkdtemp(join(tmpdir(), 'durably-dashboard-'))
  try {
    await build({
      configFile: join(import.meta.dirname, 'vite.config.ts'),
      mode,
      logLevel: 'warn',
      build: { outDir, emptyOutDir: true },
    })
    const files = await readdir(outDir, { recursive: true, withFileTypes: true })
    const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name))
    const read = async (path: string): Promise<[string, Asset]> => {
      const type = TYPES[extname(path)]
      if (type === undefined) throw new Error(`The page has the file ${path}, which nobody knows how to serve.`)
      return [path.slice(outDir.length + 1).replaceAll('\\', '/'), { type, text: await readFile(path, 'utf8') }]
    }
    return Object.fromEntries(await Promise.all(paths.map(read)))
  } finally {
    await rm(outDir, { recursive: true, force: true })
  }
}
