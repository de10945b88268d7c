import { CompiledQuery } from 'kysely'
import type { Executor } from './executor'
import type { SqlContext } from '../statement'

const PRAGMAS = ['journal_mode', 'synchronous', 'busy_timeout', 'wal_autocheckpoint'] as const

const SYNCHRONOUS: Readonly<Record<string, string>> = { 0: 'off', 1: 'normal', 2: 'full', 3: 'extra' }

/** The settings in force on the connection; `null` where the database has none, or does not tell. */
export interface DurabilityReport {
  readonly journalMode: string | null
  /** SQLite's `synchronous`, or Postgres's `synchronous_commit`. */
  readonly synchronous: string | null
  readonly busyTimeoutMs: number | null
  readonly walAutocheckpoint: number | null
  /** Whether an acknowledged commit survives a power cut, as far as the database is concerned; `null` if not known. */
  readonly survivesPowerCut: boolean | null
}

export function reportDurability({ dialect }: SqlContext, executor: Executor): Promise<DurabilityReport> {
  return dialect.isServer ? reportServer(executor) : reportPragmas(executor)
}

async function reportServer(executor: Executor): Promise<DurabilityReport> {
  const query = CompiledQuery.raw(
    "select current_setting('synchronous_commit') as synchronous, current_setting('fsync') as fsync",
  )
  const [row = {}] = await executor.read(query)
  const synchronous = String(row['synchronous'])
  return {
    ...{ journalMode: null, synchronous, busyTimeoutMs: null, walAutocheckpoint: null },
    survivesPowerCut: synchronous !== 'off' && row['fsync'] === 'on',
  }
}

async function reportPragmas(executor: Executor): Promise<DurabilityReport> {
  const values: Partial<Record<(typeof PRAGMAS)[number], unknown>> = {}
  for (const pragma of PRAGMAS) values[pragma] = await readPragma(executor, pragma)
  const journalMode = typeof values.journal_mode === 'string' ? values.journal_mode : null
  const synchronous = SYNCHRONOUS[String(values.synchronous)] ?? null
  return {
    journalMode,
    synchronous,
    busyTimeoutMs: numberOrNull(values.busy_timeout),
    walAutocheckpoint: numberOrNull(values.wal_autocheckpoint),
    survivesPowerCut: journalMode === null || synchronous === null ? null : survives(journalMode, synchronous),
  }
}

function survives(journalMode: string, synchronous: string): boolean {
  return journalMode !== 'memory' && journalMode !== 'off' && (synchronous === 'full' || synchronous === 'extra')
}

async function readPragma(executor: Executor, pragma: string): Promise<unknown> {
  try {
    const [row] = await executor.read(CompiledQuery.raw(`pragma ${pragma}`))
    return row === undefined ? null : Object.values(row)[0]
  } catch {
    // Servers refuse some pragmas; what they do is theirs to say.
    return null
  }
}

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}
