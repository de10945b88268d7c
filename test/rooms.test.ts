import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './root'

const SOURCES = join(ROOT, 'packages/core/src')
const PAGE = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8')

/** Memory storage is read beside the port, which it follows file by file; the room of the tests is told as a whole. */
const TOLD_AS_A_WHOLE = ['memory', 'testing']

const ROOMS = readdirSync(SOURCES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !TOLD_AS_A_WHOLE.includes(entry.name))
  .map(({ name }) => name)

function isNamed(room: string, file: string): boolean {
  return [file, `${file}.ts`, `${room}/${file}`, `${room}/${file}.ts`].some((name) => PAGE.includes(`\`${name}\``))
}

describe('ARCHITECTURE.md names every file of the room', () => {
  it.each(ROOMS)('%s', (room) => {
    const files = readdirSync(join(SOURCES, room))
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && name !== 'index.ts')
      .map((name) => name.slice(0, -'.ts'.length))
    expect(files.filter((file) => !isNamed(room, file))).toEqual([])
  })
})
