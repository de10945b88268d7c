import { existsSync, readFileSync } from 'node:fs'
import { createDurably } from '@coji/durably'
import { betterSqlite3 } from '@coji/durably/better-sqlite3'
import { libsql } from '@coji/durably/libsql'
import { postgres } from '@coji/durably/postgres'
import Database from 'better-sqlite3'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { createDatabase } from '../../../test/postgres'
import { serveHrana } from '../../storage-kysely/test/hrana-server'
import { readOnly } from '../src/database/read-only'
import { call, newFile } from './kit'

async function newDatabase() {
  const file = newFile()
  const durably = createDurably({ dialect: betterSqlite3(file) })
  await durably.migrate()
  const { id } = await durably.trigger('job', {})
  await durably.close()
  return { file, id }
}

const readingOf = (id: string) => [
  ['status'],
  ['runs'],
  ['run', id],
  ['logs', id],
  ['migrate', '--dry-run'],
  ['cancel', id, '--dry-run'],
  ['cancel', '--all', '--dry-run'],
]

async function readAll(address: string, id: string): Promise<void> {
  for (const command of readingOf(id)) {
    expect({ command, ...(await call([...command, '--db', address])) }).toMatchObject({ code: 0 })
  }
}

it('changes not a byte of the file by reading, and writes nothing beside it', async () => {
  const { file, id } = await newDatabase()
  const before = readFileSync(file)
  await readAll(file, id)
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(existsSync(`${file}-wal`) ? readFileSync(`${file}-wal`).length : 0).toBe(0)
})

it('leaves the file in the mode that the application has chosen, also by writing', async () => {
  const { file, id } = await newDatabase()
  const modeAfter = (pragma: string) => {
    const own = new Database(file)
    const mode = own.pragma(pragma, { simple: true })
    own.close()
    return mode
  }
  expect(modeAfter('journal_mode = delete')).toBe('delete')
  await readAll(file, id)
  expect(await call(['cancel', id, '--db', file])).toMatchObject({ code: 0 })
  expect(modeAfter('journal_mode')).toBe('delete')
})

it('reads while somebody else writes, and waits for nobody', async () => {
  const { file, id } = await newDatabase()
  const own = new Database(file)
  onTestFinished(() => void own.close())
  own.exec('begin exclusive')
  await readAll(file, id)
})

it('reads with a role of Postgres that may do nothing else, and beside locked rows', async () => {
  const { url, drop } = await createDatabase()
  const durably = createDurably({ dialect: postgres({ connectionString: url }) })
  await durably.migrate()
  const { id } = await durably.trigger('job', {})
  await durably.close()
  const owner = new pg.Client(url)
  await owner.connect()
  const role = `reader_${id.toLowerCase()}`
  onTestFinished(async () => {
    await owner.query(`rollback; drop owned by ${role}; drop role ${role}`)
    await owner.end()
    await drop()
  })
  await owner.query(`create role ${role} login password 'p'; grant select on all tables in schema public to ${role}`)
  await owner.query('begin; update durably_runs set priority = 1; lock table durably_runs in share row exclusive mode')
  const reader = Object.assign(new URL(url), { username: role, password: 'p' })
  await readAll(reader.href, id)
  await owner.query('rollback')
  expect(await call(['cancel', id, '--db', reader.href])).toMatchObject({ code: 1, out: '' })
})

it('reads a server of libSQL', async () => {
  const { file, id } = await newDatabase()
  const server = await serveHrana(file)
  onTestFinished(() => server.close())
  await readAll(server.url, id)
  expect((await call(['runs', '--db', server.url, '--json'])).out).toContain(id)
  expect(await call(['cancel', id, '--db', server.url])).toMatchObject({ code: 0 })
})

it('lets no write pass, whoever asks for it', async () => {
  const { file, id } = await newDatabase()
  const durably = createDurably({ dialect: readOnly(libsql(`file:${file}`)), logger: null })
  onTestFinished(() => durably.close())
  const refused = 'This database was opened for reading.'
  await expect(durably.cancel(id)).rejects.toThrow(refused)
  await expect(durably.trigger('job', {})).rejects.toThrow(refused)
  await expect(durably.migrate()).resolves.toBeUndefined()
  await expect(durably.transaction(async () => {})).rejects.toThrow(refused)
  await expect(durably.db.deleteFrom('durably_runs').execute()).rejects.toThrow(refused)
  expect(await durably.getRun(id)).toMatchObject({ status: 'pending' })
})
