import { chmod, chown, copyFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { OwnPostgres } from '../../../test/postgres'

/** What a backup needs the server to keep until it has ended. */
export const BACKUP_SETTINGS = { wal_keep_size: '1GB', max_wal_size: '2GB' } as const

/** Folders of which the files say something of the running server alone; those of the log are copied at the end. */
const LEFT_EMPTY = [
  ...['pg_dynshmem', 'pg_notify', 'pg_replslot', 'pg_serial', 'pg_snapshots', 'pg_stat_tmp', 'pg_subtrans'],
  'pg_wal',
]
const LEFT_OUT = ['postmaster.pid', 'postmaster.opts']

/**
 * A copy of a running server's files, with all of its log up to the end of the copy: what `pg_basebackup` makes. The server
 * goes on meanwhile.
 */
export async function takeBaseBackup(server: OwnPostgres, folder: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    const data = await dataFolder(client)
    await client.query("select pg_backup_start('test', true)")
    await copyAll({ from: data, to: folder, skips: LEFT_OUT, leavesEmpty: LEFT_EMPTY })
    const { rows } = await client.query<{ readonly labelfile: string }>('select labelfile from pg_backup_stop(false)')
    await copyAll({ from: join(data, 'pg_wal'), to: join(folder, 'pg_wal') })
    await writeFile(join(folder, 'backup_label'), rows[0]?.labelfile ?? '')
  } finally {
    await client.end()
  }
}

/** In the place of all that the other server had. */
export async function restoreBaseBackup(server: OwnPostgres, folder: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const data = await dataFolder(client)
  await client.end()
  await server.stop('fast')
  const owner = await stat(data)
  await rm(data, { recursive: true })
  await copyAll({ from: folder, to: data, owner })
  await server.start()
}

async function dataFolder(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ readonly data_directory: string }>('show data_directory')
  return rows[0]?.data_directory ?? ''
}

interface Copy {
  readonly from: string
  readonly to: string
  readonly skips?: readonly string[]
  readonly leavesEmpty?: readonly string[]
  /** Postgres runs as another user where the tests run as root. */
  readonly owner?: { readonly uid: number; readonly gid: number }
}

async function copyAll({ from, to, skips = [], leavesEmpty = [], owner }: Copy): Promise<void> {
  await mkdir(to, { recursive: true })
  await chmod(to, 0o700)
  if (owner !== undefined) await chown(to, owner.uid, owner.gid)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const { name } = entry
    const [source, target] = [join(from, name), join(to, name)]
    if (skips.includes(name)) continue
    if (entry.isDirectory()) {
      const isLeftEmpty = leavesEmpty.includes(name)
      await (isLeftEmpty
        ? mkdir(target, { mode: 0o700 })
        : copyAll({ from: source, to: target, ...(owner && { owner }) }))
      continue
    }
    await copyFile(source, target).catch(unlessGone)
    if (owner !== undefined) await chown(target, owner.uid, owner.gid)
  }
}

/** A running server removes files that it needs no more. */
function unlessGone(error: unknown): void {
  if (Object(error).code !== 'ENOENT') throw error
}
