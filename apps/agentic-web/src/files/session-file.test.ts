import { describe, expect, it } from 'vitest'
import { troubleWithFile, troubleWithFiles, troubleWithPath } from './session-file'

describe('a path of a session', () => {
  it.for(['a', 'notes/today.md', 'ä/日本.txt', '.git/config', 'a b', '-rf'])('may be %s', (path) => {
    expect(troubleWithPath(path)).toBeNull()
  })

  it.for([
    '',
    '/etc/passwd',
    '../a',
    'a/../b',
    'a//b',
    'a/',
    './a',
    'a\\b',
    'a\0',
    'a\nb',
    'e\u0301',
    'a\u200bb',
    '\ud800',
  ])('is not %j', (path) => {
    expect(troubleWithPath(path)).not.toBeNull()
  })

  it('is not longer or deeper than others can bear', () => {
    expect(troubleWithPath('é'.repeat(101))).toContain('200 bytes')
    expect(troubleWithPath('a/b/c/d/e/f/g/h/i')).toContain('8 folders')
  })
})

describe('the files of a session', () => {
  it('have their bounds', () => {
    const many = Array.from({ length: 200 }, (_, index) => ({ path: `${index}`, size: 1 }))
    expect(troubleWithFiles(many)).toBeNull()
    expect(troubleWithFile({ path: '7', size: 5 }, many)).toBeNull()
    expect(troubleWithFile({ path: 'one more', size: 0 }, many)).toContain('at most 200')
    expect(troubleWithFiles([{ path: 'a', size: 2 ** 20 + 1 }])).toContain('a has 1048577 bytes')
    expect(troubleWithFiles([0, 1, 2, 3, 4].map((n) => ({ path: `${n}`, size: 2 ** 20 })))).toContain('4194304')
  })

  it('are not folders of each other', () => {
    expect(troubleWithFile({ path: 'a/b', size: 1 }, [{ path: 'a', size: 1 }])).toBe(
      'a is a file, and a/b would be in it.',
    )
  })
})
