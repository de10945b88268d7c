import { StorageError } from '@coji/durably-core/storage'
import { CompiledQuery } from 'kysely'
import type { Durability } from '../dialect'

/** The settings of one connection; `journal_mode = WAL` belongs to the file and is asserted by each driver. */
export function connectionPragmas(durability: Durability): readonly string[] {
  return [
    `synchronous = ${durability === 'safe' ? 'FULL' : 'NORMAL'}`,
    'busy_timeout = 20',
    'trusted_schema = OFF',
    'cell_size_check = ON',
    'mmap_size = 0',
    'wal_autocheckpoint = 1000',
    'journal_size_limit = 67108864',
    'cache_size = -16000',
    'temp_store = MEMORY',
  ]
}

/** SQLite keeps the old mode without an error where WAL is not possible, on network mounts for instance. */
export function assertWal(mode: unknown, location: string | null): void {
  if (mode === 'wal' || mode === 'memory') return
  throw new StorageError(
    'STORAGE_UNAVAILABLE',
    `${location ?? 'The database'} stays in journal mode "${String(mode)}" instead of WAL. Put the file on a local disk.`,
  )
}

/** Read back, because a build of SQLite may ignore a pragma without a word. */
export function assertSynchronous(level: unknown, durability: Durability, location: string | null): void {
  const wanted = durability === 'safe' ? 2 : 1
  if (Number(level) === wanted) return
  throw new StorageError(
    'STORAGE_UNAVAILABLE',
    `${location ?? 'The database'} has synchronous = ${String(level)} where ${wanted} was set.`,
  )
}

export function command(text: string): CompiledQuery {
  return CompiledQuery.raw(text)
}
