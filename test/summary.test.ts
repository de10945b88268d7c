import { describe, expect, it } from 'vitest'
import { suitesOf, table, testsOf, unexplainedSkips, verdict } from '../scripts/summary.mjs'

const REPORT = {
  testResults: [
    {
      name: '/repo/packages/core/src/a.test.ts',
      status: 'passed',
      assertionResults: [
        { fullName: 'a works', status: 'passed' },
        { fullName: 'a waits', status: 'pending' },
      ],
    },
    { name: '/repo/test/b.test.ts', status: 'failed', assertionResults: [] },
  ],
}

describe('the summary of a run', () => {
  const tests = testsOf(REPORT, '/repo')

  it('counts a file that did not load as a failure', () => {
    expect(tests).toEqual([
      { file: 'packages/core/src/a.test.ts', name: 'a works', status: 'passed' },
      { file: 'packages/core/src/a.test.ts', name: 'a waits', status: 'skipped' },
      { file: 'test/b.test.ts', name: 'test/b.test.ts did not run', status: 'failed' },
    ])
  })

  it('finds a skipped test that has no written reason', () => {
    expect(unexplainedSkips(tests, {}, 'quick')).toHaveLength(1)
    expect(unexplainedSkips(tests, { 'a waits': ' ' }, 'quick')).toHaveLength(1)
    expect(unexplainedSkips(tests, { 'a waits': 'needs a browser' }, 'full')).toHaveLength(0)
  })

  it('takes the reason of a file in the quick lane alone', () => {
    const reasons = { 'packages/core/src/a.test.ts': 'takes minutes' }
    expect(unexplainedSkips(tests, reasons, 'quick')).toHaveLength(0)
    expect(unexplainedSkips(tests, reasons, 'full')).toHaveLength(1)
  })

  it('adds gates to tests in its last line', () => {
    const gates = [
      { name: 'lint', code: 0, seconds: '1.0' },
      { name: 'types', code: 2, seconds: '1.0' },
    ]
    expect(verdict(tests, gates)).toEqual({ failed: 2, line: '2 passed, 2 failed' })
  })

  it('reads what the suites reported and ignores blank lines', () => {
    expect(suitesOf('{"suite":"kills","kills":3}\n\n')).toEqual([{ suite: 'kills', kills: 3 }])
  })

  it('aligns its columns', () => {
    expect(
      table([
        ['a', 'b'],
        ['long', 1],
      ]),
    ).toBe('a     b\n----  -\nlong  1')
  })
})
