import { betterSqlite3 } from '@coji/durably-storage-kysely/better-sqlite3'
import { postgres } from '@coji/durably-storage-kysely/postgres'
import Database from 'better-sqlite3'
import type { Dialect } from 'kysely'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startOwnPostgres } from '../../../test/postgres'
import { BACKUP_SETTINGS, restoreBaseBackup, takeBaseBackup } from './base-backup'

/** A database that is backed up while it is written to, and the one that is made of the backup. */
export interface BackedUp {
  readonly live: () => Dialect
  backUp(): Promise<void>
  /** Of what was backed up. */
  restore(): Promise<() => Dialect>
  end(): Promise<void>
}

export const BACKUP_PLACES: readonly { readonly driver: string; open(): Promise<BackedUp> }[] = [
  { driver: 'better-sqlite3, by vacuum into', open: async () => openSqlite(newFolder()) },
  { driver: 'postgres, by a base backup', open: async () => openPostgres(newFolder()) },
]

const BALLAST_MB = 32
const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const VACUUM = `
  const [file, backup] = process.argv.slice(1)
  require('better-sqlite3')(file, { readonly: true }).prepare('vacuum into ?').run(backup)
`

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'durably-backup-'))
}

function openSqlite(folder: string): BackedUp {
  const [file, backup] = [join(folder, 'live.db'), join(folder, 'backup.db')]
  fillWithBallast(file)
  return {
    live: () => betterSqlite3(file),
    backUp: () => vacuumElsewhere(file, backup),
    restore: async () => () => betterSqlite3(backup),
    end: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** So that there is time to write while it is copied. */
function fillWithBallast(file: string): void {
  const database = new Database(file)
  database.exec('create table ballast (content blob)')
  for (let count = 0; count < BALLAST_MB; count++) database.exec('insert into ballast values (randomblob(1000000))')
  database.close()
}

/** It keeps its own process from all else until it has ended. */
async function vacuumElsewhere(file: string, backup: string): Promise<void> {
  await promisify(execFile)(process.execPath, ['-e', VACUUM, file, backup], { cwd: PACKAGE })
}

async function openPostgres(folder: string): Promise<BackedUp> {
  const [first, second] = await Promise.all([startOwnPostgres(BACKUP_SETTINGS), startOwnPostgres()])
  const { url } = await first.createDatabase()
  return {
    live: () => postgres({ connectionString: url }),
    backUp: () => takeBaseBackup(first, folder),
    async restore() {
      await restoreBaseBackup(second, folder)
      const restored = new URL(second.url)
      restored.pathname = new URL(url).pathname
      return () => postgres({ connectionString: restored.href })
    },
    async end() {
      await Promise.all([first.end(), second.end()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
