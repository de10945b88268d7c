import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from './root'

const ROWS = readFileSync(join(ROOT, 'docs', 'guarantees.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| G\d+ \|/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))

function pathsIn(cell = ''): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
}

it('every promise names tests that exist', () => {
  expect(ROWS.length).toBeGreaterThan(20)
  const missing = ROWS.flatMap(([, id, , tests]) => {
    const paths = pathsIn(tests)
    return paths.length === 0 ? [`${id} names no test`] : paths.filter((path) => !existsSync(join(ROOT, path)))
  })
  expect(missing).toEqual([])
})
