import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createDatabase } from '../../../../test/postgres'
import { openMigrated } from '../instances'
import type { DatabaseOptions, SqlDurably } from '../../src/index'
import { connect } from './programs/connect'

/** A new database, gone after the test. */
export async function newDatabase(): Promise<string> {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  return database.url
}

/** Where the bodies of a test's programs say that they began. */
export function newWitness(): string {
  const folder = mkdtempSync(join(tmpdir(), 'durably-witness-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'witness')
}

/** An instance of the test's own, closed after it. */
export function observe(
  url: string,
  options: Partial<Omit<DatabaseOptions, 'dialect' | 'db'>> = {},
): Promise<SqlDurably> {
  return openMigrated(connect(url), options)
}
