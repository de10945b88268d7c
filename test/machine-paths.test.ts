import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow } from './files-below'
import { ROOT } from './root'

const DATABASE = /\.(db|sqlite3)(-.*)?$/

/** What ties a file to the machine that wrote it. The parts are joined so that this file is clean itself. */
const TRACES: readonly RegExp[] = [
  new RegExp(['/(home', 'Users)/[a-z0-9_.-]+/'].join('|')),
  new RegExp(['/root', '[a-z0-9_.-]+'].join('/')),
  new RegExp(['[a-z]:\\\\', 'Users\\\\'].join(''), 'i'),
  new RegExp(['registry', '(npmjs|yarnpkg|npmmirror|[a-z0-9-]+\\.[a-z]{2,})'].join('\\.')),
  new RegExp(['_auth', 'Token'].join('')),
]

function tracesIn(text: string): readonly string[] {
  const places = [ROOT, homedir()].filter((path) => path.split(/[/\\]/).length > 2 && text.includes(path))
  return [...places, ...TRACES.filter((trace) => trace.test(text)).map(String)]
}

describe('files that are committed', () => {
  it('name no path of a machine and no package registry', () => {
    const files = filesBelow(ROOT).filter((path) => !DATABASE.test(path))
    const dirty = files.filter((path) => tracesIn(readFileSync(path, 'utf8')).length > 0)
    expect(files.length).toBeGreaterThan(50)
    expect(dirty.map((path) => path.slice(ROOT.length + 1))).toEqual([])
  })

  it('have a lock file without download addresses', () => {
    expect(readFileSync(join(ROOT, 'pnpm-lock.yaml'), 'utf8')).not.toMatch(/tarball:|https?:\/\//)
  })

  it.each([
    ['/home', 'someone', 'src'].join('/'),
    ['', 'Users', 'someone', 'src'].join('/'),
    ['', 'root', 'src'].join('/'),
    ['https://registry', 'npmjs', 'org'].join('.'),
  ])('are checked for %s', (text) => {
    expect(tracesIn(text)).not.toEqual([])
  })
})
