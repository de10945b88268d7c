import { createClient } from '@libsql/client'
import { CompiledQuery, Kysely, sql } from 'kysely'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { libsql, type LibsqlConfig } from '../src/drivers/libsql'
import { tempFile } from './databases'

let temp: ReturnType<typeof tempFile>
let url: string

beforeEach(() => {
  temp = tempFile()
  url = `file:${temp.file}`
})

afterEach(() => temp.remove())

const COUNT = CompiledQuery.raw('select count(*) as n from t')
/** Not the statement that was refused, which would only be begun again. */
const OTHER = CompiledQuery.raw('insert into t values (3) returning id')
const insert = (id: number) => CompiledQuery.raw('insert into t values (?)', [id])

function hooksOf(config: LibsqlConfig) {
  const { batch, batchNow, close } = libsql(config).durablyHooks
  if (batch === undefined || close === undefined) throw new Error('It has no hooks.')
  return { batch: (...queries: CompiledQuery[]) => batch(queries, 1000, 'owner'), batchNow, close }
}

it('a file is asked within the call, by whichever URL; a key, a replica and a client of the application are not', async () => {
  const client = createClient({ url })
  const answers = (config: LibsqlConfig) => hooksOf(config).batchNow !== undefined
  expect([url, `file://${temp.file}`, `file://localhost${temp.file}`, { url, timeout: 1 }].map(answers)).toEqual(
    Array(4).fill(true),
  )
  const others = [
    { client },
    { url, encryptionKey: 'k' },
    { url, syncUrl: 'http://localhost' },
    'file::memory:',
    `${url}?tls=0`,
  ]
  expect(others.map(answers)).toEqual(Array(others.length).fill(false))
  client.close()
})

it('the file is the one that the client opens', async () => {
  const client = createClient({ url: `file:${temp.file}%20%23` })
  await client.execute('create table t (id integer)')
  const { batch, close } = hooksOf(`file:${temp.file}%20%23`)
  await batch(insert(7))
  expect((await client.execute('select id from t')).rows).toMatchObject([{ id: 7 }])
  await close()
  client.close()
})

it.each([
  ['one statement', [insert(1)], OTHER],
  ['a list', [insert(1), insert(2)], OTHER],
])('what follows a busy file is committed: %s', async (_name, refused, next) => {
  const client = createClient({ url })
  await client.execute('create table t (id integer)')
  const { batch, close } = hooksOf(url)
  const transaction = await client.transaction('write')
  await expect(batch(...refused)).rejects.toMatchObject({ code: 'SQLITE_BUSY' })
  await transaction.rollback()
  await batch(next)
  expect((await client.execute(COUNT.sql)).rows).toMatchObject([{ n: 1 }])
  await client.execute('insert into t values (4)')
  expect(await batch(COUNT)).toEqual([[{ n: 2 }]])
  await close()
  client.close()
})

it('values of applications are bound and read as the client does, whose native part would end the process', async () => {
  const db = new Kysely<unknown>({ dialect: libsql(url) })
  const echo = async (value: unknown) => (await sql<{ v: unknown }>`select ${value} as v`.execute(db)).rows[0]?.v
  expect(await Promise.all([true, false, new Date(5), 2n ** 40n, null, 1.5].map(echo))).toEqual([
    1,
    0,
    5,
    2 ** 40,
    null,
    1.5,
  ])
  expect(await echo(new Uint8Array([1, 2]))).toEqual(new Uint8Array([1, 2]).buffer)
  await expect(echo({ a: 1 })).rejects.toThrow('An object cannot be passed as a parameter.')
  for (const value of [undefined, Number.NaN, 2n ** 70n]) await expect(echo(value)).rejects.toThrow('cannot be passed')
  await expect(sql`select 9223372036854775807 as v`.execute(db)).rejects.toThrow(RangeError)
  await db.destroy()
})
