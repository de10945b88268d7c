import { describe, expect, test } from 'vitest'
import { parseArguments, USAGE } from '../src/arguments'

describe('parseArguments', () => {
  test('needs nothing', () => {
    const options = { db: null, keep: false, rows: 500_000, color: true, dashboard: false }
    expect(parseArguments([])).toEqual({ kind: 'run', options })
  })

  test('takes every option', () => {
    const options = { db: 'my.db', keep: true, rows: 50_000, color: false, dashboard: true }
    const argv = ['--db', 'my.db', '--keep', '--rows=50_000', '--no-color', '--dashboard']
    expect(parseArguments(argv)).toEqual({ kind: 'run', options })
  })

  test('helps, whatever else is asked', () => {
    expect(parseArguments(['--help', '--rows', '5'])).toEqual({ kind: 'help' })
    expect(parseArguments(['-h'])).toEqual({ kind: 'help' })
  })

  for (const argv of [['--rows', '10'], ['--rows', 'many'], ['--rows', '1.5e9'], ['--db', ''], ['--fast'], ['extra']]) {
    test(`refuses ${argv.join(' ')}`, () => expect(parseArguments(argv).kind).toBe('wrong'))
  }

  test('the help names every option and fits into 60 columns', () => {
    for (const option of ['--db', '--rows', '--keep', '--dashboard', '--no-color', '--help'])
      expect(USAGE).toContain(option)
    for (const line of USAGE.split('\n')) expect(line.length).toBeLessThan(60)
  })
})
