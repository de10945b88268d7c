import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDurably, type Durably } from '@coji/durably-core'
import { withLogPersistence } from '@coji/durably-plugins'
import { createKyselyStorage } from '@coji/durably-storage-kysely'
import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import { onTestFinished } from 'vitest'

/** A folder of a test's own, gone after it. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'durably-server-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Executes in this process the runs of a file that another one serves. */
export async function openWorker(file: string): Promise<Durably> {
  const storage = createKyselyStorage({ dialect: betterSqlite3(file) })
  const durably = createDurably({ storage, pollingInterval: 50, logger: null }).use(withLogPersistence())
  onTestFinished(() => durably.close())
  await durably.migrate()
  return durably
}
