import type { RawBuilder } from 'kysely'
import { expect, it } from 'vitest'
import { createKyselyStorage, type DurablyDialect, type KyselyStorage } from '../src'
import type { SqlDialect } from '../src/dialect'
import { postgres } from '../src/dialect/postgres'
import { sqlite } from '../src/dialect/sqlite'
import { TABLES } from '../src/dialect/tables'
import { counting } from './counting'
import { DATABASES } from './databases'
import { EVERY_OPERATION } from './every-operation'
import { toReadable } from './sql-text'

const DIALECTS: Readonly<Record<string, SqlDialect>> = { 'better-sqlite3': sqlite, postgres }
const PLACES = DATABASES.filter(({ name }) => name in DIALECTS)

const ALIASES = [undefined, ...'abcdefghijklmnopqrstuvwxyz']

/**
 * Lists of columns have names here, for they say nothing of the statement and would change all of them with each new column;
 * so has the time of the database.
 */
function namesOfParts(dialect: SqlDialect, { db }: KyselyStorage): readonly (readonly [string, string])[] {
  const textOf = (part: RawBuilder<unknown>) => part.compile(db).sql
  const lists = TABLES.flatMap((table) =>
    ALIASES.map((alias) => {
      const name = `{columns of ${alias === undefined ? '' : `${alias}: `}${table}}`
      return [textOf(dialect.columns(table, alias)), name] as const
    }),
  )
  const known = lists.filter(([text]) => text.includes(','))
  return [...known.sort(([a], [b]) => b.length - a.length), [textOf(dialect.now), '{now}']]
}

/** Each statement once, in the order in which it was sent; `known` has where those are that came before. */
function textOf(name: string, texts: readonly string[], known: Map<string, string>): string {
  const parts = [...new Set(texts)].map((text, index) => {
    const place = known.get(text)
    if (place !== undefined) return `-- as ${place}\n`
    known.set(text, `${name}, ${index + 1}`)
    return `${text};\n`
  })
  return `-- ${name}\n${parts.join('\n')}`
}

/** About the tables themselves, and what sends within a transaction what others send. */
const OTHERS = /^(migrate|close|checkSchema|report\w+|watch\.\w+|transaction\.\w+)$/

type Method = (...args: unknown[]) => unknown

/** The same with other methods; their names are such as `getRun` and `cluster.inbox.publish`. */
function withMethods<T extends object>(group: T, instead: (name: string, method: Method) => Method, path = ''): T {
  const members = Object.entries(group).map(([key, member]: [string, unknown]) => {
    const name = path + key
    if (typeof member === 'function') return [key, instead(name, member.bind(group) as Method)]
    return [key, isGroup(member) ? withMethods(member, instead, `${name}.`) : member]
  })
  return Object.fromEntries(members)
}

function isGroup(member: unknown): member is object {
  return typeof member === 'object' && member !== null && Object.getPrototypeOf(member) === Object.prototype
}

it.each(PLACES)('every statement is as it was reviewed, on $name', async (database) => {
  const opened = await database.open()
  const { dialect, messages } = counting(opened.connect() as DurablyDialect)
  const storage = createKyselyStorage({ dialect })
  await storage.migrate()
  const names = namesOfParts(DIALECTS[database.name] as SqlDialect, storage)
  const parts: string[] = []
  const known = new Map<string, string>()
  const notCalled = new Set<string>()
  const watched = withMethods(storage, (method, call) => {
    if (!OTHERS.test(method)) notCalled.add(method)
    return (...args) => {
      notCalled.delete(method)
      return call(...args)
    }
  })
  for (const { name, prepare } of EVERY_OPERATION) {
    const act = await prepare(watched)
    messages.length = 0
    await act()
    const texts = messages
      .flat()
      .map(({ sql: text }) => toReadable(names.reduce((all, [part, short]) => all.replaceAll(part, short), text)))
    expect(texts, name).not.toEqual([])
    parts.push(textOf(name, texts, known))
  }
  await storage.close()
  await opened.dispose()
  expect([...notCalled]).toEqual([])
  await expect(parts.join('\n')).toMatchFileSnapshot(`./statements.${database.name}.sql`)
})
