import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Dialect } from 'kysely'
import { afterEachTest } from '../../../test/leftovers'
import { createDurably, type DatabaseOptions, type SqlDurably } from '../src/index'

const folders: string[] = []
const open: SqlDurably[] = []

afterEachTest(async () => {
  for (const durably of open.splice(0)) await durably.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A file of a test's own, gone after it. */
export function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'durably-'))
  folders.push(folder)
  return join(folder, 'app.db')
}

type Options = Omit<DatabaseOptions, 'dialect' | 'db'>

/** An instance on a file, closed after the test. */
export function openOn(dialect: Dialect, options: Partial<Options> = {}): SqlDurably {
  const durably = createDurably({ logger: null, ...options, dialect })
  open.push(durably)
  return durably
}

export async function openMigrated(dialect: Dialect, options: Partial<Options> = {}): Promise<SqlDurably> {
  const durably = openOn(dialect, options)
  await durably.migrate()
  return durably
}
