import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const NOT_COMMITTED = new Set(['node_modules', 'dist', '.git', '.turbo', '.tmp', 'coverage', '.next'])

/** The files of a folder of the workspace, without what installing, building and testing makes. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return NOT_COMMITTED.has(entry.name) ? [] : filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}
