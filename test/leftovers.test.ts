import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow } from './files-below'
import { ROOT } from './root'

const OF_A_MODULE = /^(before|after)(Each|All)\(/m

/** The hooks of vitest that are registered as a module is loaded. */
const hasHooks = (source: string) => source.includes("from 'vitest'") && OF_A_MODULE.test(source)

const FOLDERS = ['packages', 'apps', 'examples', 'benchmarks', 'test']
const isShared = (path: string) => /\.tsx?$/.test(path) && !/\.test\.tsx?$/.test(path) && !path.endsWith('-setup.ts')

describe('modules that files of tests share', () => {
  it('leave what they leave to leftovers.ts: where files share a process, their own hooks would be those of the first', () => {
    const shared = FOLDERS.flatMap((folder) => filesBelow(join(ROOT, folder))).filter(isShared)
    expect(shared.length).toBeGreaterThan(500)
    const withHooks = shared.filter((path) => hasHooks(readFileSync(path, 'utf8')))
    expect(withHooks.map((path) => relative(ROOT, path))).toEqual([])
  })

  it('may register hooks for the file that calls them', () => {
    const [head, hook] = ["import { afterEach } from 'vitest'", 'afterEach(() => {})']
    expect(hasHooks(`${head}\n${hook}`)).toBe(true)
    expect(hasHooks(`${head}\nexport function use() {\n  ${hook}\n}`)).toBe(false)
  })
})
