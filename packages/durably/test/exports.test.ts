import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const HERE = import.meta.dirname

/** The names a module hands on, types marked, read from its `export { … }` lists: there is no other kind. */
function namesOf(path: string): string[] {
  const source = readFileSync(join(HERE, path), 'utf8')
  const lists = [...source.matchAll(/^export (type )?\{([^}]*)\}/gm)]
  expect(source.match(/^export /gm)).toHaveLength(lists.length)
  return lists
    .flatMap(([, isType, list = '']) =>
      list
        .split(',')
        .map((name) => name.trim().replace(/\S+ as /, ''))
        .filter((name) => name !== '')
        .map((name) => (isType === undefined || name.startsWith('type ') ? name : `type ${name}`)),
    )
    .sort()
}

const { exports } = JSON.parse(readFileSync(join(HERE, '../package.json'), 'utf8')) as {
  exports: Record<string, string | Record<string, unknown>>
}
const ENTRIES = Object.entries(exports).flatMap(([entry, target]) =>
  typeof target === 'string' ? [] : [{ entry, path: join('..', String(target['@coji/durably-source'])) }],
)

describe.each(ENTRIES)('the entry $entry', ({ entry, path }) => {
  it('exports these names', async () => {
    const names = namesOf(path)
    await expect(`${names.join('\n')}\n`).toMatchFileSnapshot(`exports/${entry.replace(/^\.\/?/, '') || 'index'}.txt`)
  })

  it('has each of its values', async () => {
    const module = (await import(join(HERE, path))) as object
    expect(Object.keys(module).sort()).toEqual(namesOf(path).filter((name) => !name.startsWith('type ')))
  })
})

describe('the umbrella', () => {
  it.each([
    [['../src/index.ts'], '../../core/src/index.ts'],
    [['../src/index.ts', '../src/storage.ts'], '../../storage-kysely/src/index.ts'],
    [['../src/testing.ts'], '../../core/src/testing/index.ts'],
    [['../src/queue.ts'], '../../core/src/queue/index.ts'],
    [['../src/plugins.ts'], '../../plugins/src/index.ts'],
    [['../src/plugins-node.ts'], '../../plugins/src/node/index.ts'],
    [['../src/libsql.ts'], '../../storage-kysely/src/drivers/libsql.ts'],
  ])('hands on by %s every name of %s', (own, source) => {
    const text = readFileSync(join(HERE, source), 'utf8')
    const declared = [
      ...text.matchAll(/^export (?:(?:interface|type) (\w+)\b(?! \{)|(?:function|const|class) (\w+))/gm),
    ]
    const wanted = declared.length > 0 ? declared.map(([, type, value]) => value ?? `type ${type}`) : namesOf(source)
    expect(own.flatMap(namesOf)).toEqual(expect.arrayContaining(wanted))
  })
})
