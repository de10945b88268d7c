import { describe, expect, it } from 'vitest'
import { blocksOf, modulesOf, originOf } from './docs-blocks'

const PAGE = [
  '# Page',
  '```ts run',
  'const a = 1',
  '```',
  'text',
  '```ts continue',
  'const b = a',
  'const c: string = b',
  '```',
  '```ts file="jobs.ts"',
  'export const d = 1',
  '```',
  '```ts ignore="shows a mistake"',
  'const e: string = 1',
  '```',
  '```tsx',
  '<p />',
  '```',
].join('\n')

describe('blocks of a page', () => {
  const blocks = blocksOf('docs/page.md', PAGE)
  const modules = modulesOf(blocks)

  it('are found with their marks', () => {
    expect(blocks.map(({ line, runs, continues, file, ignored }) => [line, runs, continues, file, ignored])).toEqual([
      [2, true, false, null, null],
      [6, false, true, null, null],
      [10, false, false, 'jobs.ts', null],
      [13, false, false, null, 'shows a mistake'],
      [16, false, false, null, null],
    ])
  })

  it('continue each other when they say so', () => {
    expect(modules.map(({ path }) => path)).toEqual([
      'docs-page-md/line-2.ts',
      'docs-page-md/jobs.ts',
      'docs-page-md/line-16.tsx',
    ])
    expect(modules[0]?.source).toBe('const a = 1\nconst b = a\nconst c: string = b\nexport {}\n')
  })

  it('run up to the last one that is marked', () => {
    expect(modules.map(({ running }) => running)).toEqual(['const a = 1\nexport {}\n', null, null])
  })

  it('are named in errors by the line of the page', () => {
    const [module] = modules
    expect(module && [1, 2, 3].map((line) => originOf(module, line))).toEqual([
      'docs/page.md:3',
      'docs/page.md:7',
      'docs/page.md:8',
    ])
  })

  it('must close', () => {
    expect(() => blocksOf('docs/page.md', '```ts\nconst a = 1')).toThrow('docs/page.md:1')
  })
})
