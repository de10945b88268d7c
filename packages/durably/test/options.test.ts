import Database from 'better-sqlite3'
import { createClient } from '@libsql/client'
import { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { betterSqlite3 } from '../src/better-sqlite3'
import { createDurably, createKyselyStorage, createMemoryStorage, InvalidOptionError } from '../src/index'
import { libsql } from '../src/libsql'
import { withLogPersistence, withRetention, withTabLeader } from '../src/plugins'
import { postgres } from '../src/postgres'
import { createTaskQueue } from '../src/queue'
import { sqlocal } from '../src/sqlocal'

/** As JavaScript passes it, or a value that the compiler did not look at. */
const wrong = (value: unknown): never => value as never

const dialect = betterSqlite3(':memory:')
const db = new Kysely<unknown>({ dialect: betterSqlite3(':memory:') })
const storage = createMemoryStorage()

function expectRefused(call: () => unknown, message: string): void {
  expect(call).toThrow(InvalidOptionError)
  expect(call).toThrow(message)
}

describe('an option that nobody knows', () => {
  const calls: [string, () => unknown, string][] = [
    ['an instance', () => createDurably(wrong({ dialect, tableprefix: '' })), 'Did you mean "tablePrefix"?'],
    ['an instance on a storage', () => createDurably(wrong({ storage, concurency: 2 })), 'Did you mean "concurrency"?'],
    ['a queue', () => createTaskQueue(wrong({ dialect, durabilty: 'fast' })), 'Did you mean "durability"?'],
    ['a queue in memory', () => createTaskQueue(wrong({ retries: 3 })), 'Did you mean "retry"?'],
    ['a storage', () => createKyselyStorage(wrong({ dialect, prefix: '' })), 'knows no option "prefix".'],
    ['betterSqlite3()', () => betterSqlite3(wrong({ fileName: 'a.db' })), 'Did you mean "filename"?'],
    ['libsql()', () => libsql(wrong({ url: 'file:a.db', authtoken: 'x' })), 'Did you mean "authToken"?'],
    ['postgres()', () => postgres(wrong({ connectionstring: 'x' })), 'Did you mean "connectionString"?'],
    ['sqlocal()', () => sqlocal(wrong({ databasePath: 'a.db', allowmemory: true })), 'Did you mean "allowMemory"?'],
    ['withLogPersistence()', () => withLogPersistence(wrong({ included: {} })), 'Did you mean "include"?'],
    ['withRetention()', () => withRetention(wrong({ keepNew: 5 })), 'Did you mean "keepNewest"?'],
    ['withTabLeader()', () => withTabLeader(wrong({ stalethreshold: 5 })), 'Did you mean "staleThreshold"?'],
  ]

  it.each(calls)('of %s is an error that names the nearest one', (_of, call, message) => expectRefused(call, message))

  it('is the business of the driver where it does not look like one that is known', () => {
    expect(() => libsql({ url: 'file::memory:', newerOption: 1 } as { url: string })).not.toThrow()
  })

  it('may be undefined where it is known', async () => {
    const durably = createDurably({ storage, dialect: undefined, db: undefined, tablePrefix: undefined } as never)
    await durably.close()
    const sql = createDurably({ dialect, db: undefined, storage: undefined })
    await sql.close()
  })
})

describe('a database that is none', () => {
  const calls: [string, () => unknown, string][] = [
    [
      'a file',
      () => createDurably({ dialect: wrong('file:x') }),
      "use libsql('file:x') of '@coji/durably/libsql', or be",
    ],
    [
      'a path',
      () => createDurably({ dialect: wrong('x.db') }),
      "betterSqlite3('x.db') of '@coji/durably/better-sqlite3'",
    ],
    ['a server', () => createDurably({ dialect: wrong('libsql://x.io?authToken=y') }), 'use libsql(url) of'],
    ['a queue on a file', () => createTaskQueue({ dialect: wrong('file:x') }), "use libsql('file:x')"],
    ['a helper', () => createDurably({ dialect: wrong(libsql) }), 'dialect is the function libsql(): call it.'],
    ['a promise', () => createDurably({ dialect: wrong(Promise.resolve(dialect)) }), 'dialect is a promise: await it.'],
    ['a database', () => createDurably({ dialect: wrong(new Database(':memory:')) }), 'betterSqlite3({ database })'],
    ['a Kysely', () => createDurably({ dialect: wrong(db) }), 'dialect is an instance of Kysely: give it as db.'],
    ['null', () => createDurably({ dialect: wrong(null) }), 'dialect is no Kysely dialect: it has no createAdapter()'],
    ['a dialect as db', () => createDurably({ db: wrong(dialect) }), 'db is a dialect: give it as dialect.'],
    ['a file as db', () => createDurably({ db: wrong('file:x') }), 'db must be an instance of Kysely'],
    [
      'a dialect as storage',
      () => createDurably({ storage: wrong(dialect) }),
      'storage is no Storage: it has no migrate()',
    ],
    [
      'a number as a prefix',
      () => createDurably({ dialect, tablePrefix: wrong(5) }),
      'tablePrefix must be a text, not 5.',
    ],
    ['nothing', () => createKyselyStorage(wrong({})), 'takes a dialect or a db, and was given neither.'],
    ['both', () => createKyselyStorage(wrong({ dialect, db })), 'takes a dialect or a db, and was given both.'],
    [
      'a dialect with a wrong adapter',
      () => createDurably({ dialect: { ...dialect, createAdapter: () => wrong(undefined) } }),
      'createAdapter() of the dialect gives undefined.',
    ],
    [
      'an open database',
      () => betterSqlite3(wrong(new Database(':memory:'))),
      'takes an open database as { database }.',
    ],
    ['an open client', () => libsql(wrong(createClient({ url: ':memory:' }))), 'takes an open client as { client }.'],
    ['no URL', () => libsql(wrong({})), "libsql() needs a URL, such as libsql('file:app.db')"],
    ['a text for postgres()', () => postgres(wrong('postgres://a:b@c/d')), 'takes its URL as { connectionString }.'],
    ['no file in a browser', () => sqlocal(wrong({})), "sqlocal() needs the name of a file, such as sqlocal('app.db')"],
  ]

  it.each(calls)('is refused with the right call: %s', (_what, call, message) => expectRefused(call, message))

  it('is not told with the password in it', () => {
    for (const call of [
      () => createDurably({ dialect: wrong('postgres://me:secret@host/db') }),
      () => createDurably(wrong('postgres://me:secret@host/db')),
      () => postgres(wrong('postgres://me:secret@host/db')),
      () => createDurably({ dialect: wrong('libsql://host?authToken=secret') }),
    ]) {
      expect(call).toThrow(InvalidOptionError)
      expect(call).not.toThrow('secret')
    }
  })
})
