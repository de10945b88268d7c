import { CompiledQuery } from 'kysely'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { betterSqlite3 } from '../src/drivers/better-sqlite3'
import { libsql } from '../src/drivers/libsql'
import { tempFile } from './databases'

let temp: ReturnType<typeof tempFile>

beforeEach(() => {
  temp = tempFile()
})

afterEach(() => temp.remove())

const ALL = 'select * from t'
const SOME = 'select "b", "a" as "first" from t where "a" = 1'

it.each([
  ['better-sqlite3', () => betterSqlite3(temp.file)],
  ['libsql', () => libsql(`file:${temp.file}`)],
])('statements that are kept name their columns, also those that were added meanwhile: %s', async (_name, open) => {
  const { batch, close } = open().durablyHooks
  if (batch === undefined || close === undefined) throw new Error('It has no hooks.')
  const send = (...texts: string[]) =>
    batch(
      texts.map((text) => CompiledQuery.raw(text)),
      1000,
      'owner',
    )
  await send('create table t (a integer, b text)', "insert into t values (1, 'x')")
  expect(await send(ALL, SOME)).toEqual([[{ a: 1, b: 'x' }], [{ b: 'x', first: 1 }]])
  await send('alter table t add column c integer default 2')
  expect(await send(ALL, SOME)).toEqual([[{ a: 1, b: 'x', c: 2 }], [{ b: 'x', first: 1 }]])
  await close()
})
