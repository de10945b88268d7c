import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { StorageError } from '@coji/durably-core/storage'

/** Keeps a second process off the file while the first one lives. A lock that a killed process left behind is taken over. */
export function lockFor(path: string): () => void {
  const lock = `${path}.lock`
  const holder = holderOf(lock)
  if (holder !== null && holder !== process.pid && isAlive(holder)) {
    throw new StorageError('STORAGE_HELD', `${path} is in use by process ${holder}. One process at a time.`)
  }
  writeFileSync(lock, String(process.pid))
  return () => rmSync(lock, { force: true })
}

function holderOf(lock: string): number | null {
  try {
    return Number(readFileSync(lock, 'utf8'))
  } catch {
    return null
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
