import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from './pnpm.mjs'

const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', '.turbo', '.git', '.tmp'])

/** Every file below a folder of the workspace whose path passes the test, in a stable order. */
export function filesBelow(folder, accepts) {
  const found = []
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory() && !SKIPPED_FOLDERS.has(entry.name)) found.push(...filesBelow(path, accepts))
    if (entry.isFile() && accepts(path)) found.push(path)
  }
  return found.sort()
}

/** One hash over the content of the files and the Node that is running. */
export function fingerprint(paths) {
  const hash = createHash('sha256').update(`${process.version} ${process.platform} ${process.arch}`)
  for (const path of paths) hash.update(`\0${path}\0`).update(readFileSync(join(ROOT, path)))
  return hash.digest('hex')
}

function stampPath(name) {
  return join(ROOT, 'node_modules', '.durably', name)
}

/** Whether the work called `name` was last done on exactly this input. */
export function isStamped(name, value) {
  const path = stampPath(name)
  return existsSync(path) && readFileSync(path, 'utf8') === value
}

export function stamp(name, value) {
  const path = stampPath(name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, value)
}
