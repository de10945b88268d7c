import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Folder {
  path(name: string): string
  remove(): void
}

export function newFolder(): Folder {
  const folder = mkdtempSync(join(tmpdir(), 'json-lines-storage-'))
  return { path: (name) => join(folder, name), remove: () => rmSync(folder, { recursive: true, force: true }) }
}
