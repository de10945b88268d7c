import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Asset, Assets } from '../src/assets'

// By name: whoever bundles this file puts it elsewhere.
const { resolve } = createRequire(import.meta.url)
const UI = join(resolve('@coji/durably-dashboard/package.json'), '../ui')
const VITE = join(resolve('vite/package.json'), '../bin/vite.js')

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
}

/** Builds the page and reads what came of it. `source`: from the sources of the workspace. */
export async function buildPage(mode: 'production' | 'source'): Promise<Assets> {
  const outDir = await mkdtemp(join(tmpdir(), 'durably-dashboard-'))
  try {
    const argv = [VITE, 'build', UI, '--mode', mode, '--outDir', outDir, '--emptyOutDir', '--logLevel', 'warn']
    // In a process of its own: the NODE_ENV of tests would make it a development build.
    await promisify(execFile)(process.execPath, argv, { cwd: UI, env: { ...process.env, NODE_ENV: 'production' } })
    return await readAssets(outDir)
  } finally {
    await rm(outDir, { recursive: true, force: true })
  }
}

async function readAssets(folder: string): Promise<Assets> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name))
  const read = async (path: string): Promise<[string, Asset]> => {
    const type = TYPES[extname(path)]
    if (type === undefined) throw new Error(`The page has the file ${path}, which nobody knows how to serve.`)
    return [path.slice(folder.length + 1).replaceAll('\\', '/'), { type, text: await readFile(path, 'utf8') }]
  }
  return Object.fromEntries(await Promise.all(paths.map(read)))
}
