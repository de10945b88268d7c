import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './root'

const FOLDERS = ['docs', 'packages', 'apps', 'examples', 'benchmarks']
const NOT_OURS = ['node_modules', 'dist', '.tmp', '.turbo']

function pagesBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((item) => {
    const path = join(folder, item.name)
    if (item.isDirectory()) return NOT_OURS.includes(item.name) ? [] : pagesBelow(path)
    return item.name.endsWith('.md') ? [path] : []
  })
}

const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...FOLDERS.filter((folder) => existsSync(join(ROOT, folder))).flatMap(pagesBelow),
]

function withoutCode(text: string): string {
  return text.replaceAll(/^\s*```.*?^\s*```/gms, '').replaceAll(/`[^`\n]*`/g, '')
}

interface Link {
  readonly text: string
  readonly path: string
  readonly anchor: string | null
}

/** As pages that are published with a package link to the others. */
const OWN_PAGES = /^https:\/\/github\.com\/coji\/durably\/(?:blob|tree)\/main\//
const OWN_README = /^https:\/\/github\.com\/coji\/durably(?:#readme)?$/

function linksOf(text: string): readonly Link[] {
  const inline = [...withoutCode(text).matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g)].map(([, target = '']) => target)
  const defined = [...withoutCode(text).matchAll(/^\[[^\]]+\]:\s+(\S+)/gm)].map(([, target = '']) => target)
  return [...inline, ...defined]
    .map((target) => target.replace(OWN_PAGES, '/').replace(OWN_README, '/README.md'))
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor] = target.split('#')
      return { text: target, path, anchor: anchor ?? null }
    })
}

/** As GitHub names headings: each one that comes again is numbered. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  const headings = text.replaceAll(/^\s*```.*?^\s*```/gms, '').matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)
  for (const [, heading = ''] of headings) {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = plain.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    let name = anchor
    for (let again = 1; anchors.has(name); again++) name = `${anchor}-${again}`
    anchors.add(name)
  }
  return anchors
}

/** Why it leads nowhere. */
function flawOf(page: string, { path, anchor }: Link): string | null {
  const target = join(ROOT, path.startsWith('/') ? '' : path === '' ? page : dirname(page), decodeURIComponent(path))
  if (!existsSync(target)) return `there is no ${relative(ROOT, target)}`
  if (relative(ROOT, target).startsWith('..')) return 'it leaves the repository'
  if (anchor === null || statSync(target).isDirectory() || !target.endsWith('.md')) return null
  return anchorsOf(readFileSync(target, 'utf8')).has(anchor) ? null : `no heading of it is #${anchor}`
}

function deadLinksOf(page: string): readonly string[] {
  return linksOf(readFileSync(join(ROOT, page), 'utf8')).flatMap((link) => {
    const flaw = flawOf(page, link)
    return flaw === null ? [] : [`${link.text}: ${flaw}`]
  })
}

describe('links between pages', () => {
  it.each(PAGES)('of %s lead somewhere', (page) => {
    expect(deadLinksOf(page)).toEqual([])
  })

  it('are found, and missed when they lead nowhere', () => {
    expect(
      deadLinksOf('README.md').length + linksOf(readFileSync(join(ROOT, 'README.md'), 'utf8')).length,
    ).toBeGreaterThan(20)
    expect(linksOf('[a](b.md#c) [d](https://e.f) `[g](h.md)`\n```md\n[i](j.md)\n```\n[k]: l.md')).toEqual([
      { text: 'b.md#c', path: 'b.md', anchor: 'c' },
      { text: 'l.md', path: 'l.md', anchor: null },
    ])
    expect(flawOf('README.md', { text: '', path: 'docs/none.md', anchor: null })).toBe('there is no docs/none.md')
    expect(flawOf('README.md', { text: '', path: '', anchor: 'install' })).toBeNull()
    expect(flawOf('README.md', { text: '', path: '', anchor: 'none' })).toBe('no heading of it is #none')
    expect([...anchorsOf('# A `b`, c: d!\n## A\n## A\n## [x](y.md) z')]).toEqual(['a-b-c-d', 'a', 'a-1', 'x-z'])
  })
})
