export interface DocsBlock {
  readonly page: string
  /** The line of the opening fence, from 1. */
  readonly line: number
  readonly code: string
  readonly runs: boolean
  readonly continues: boolean
  readonly extension: 'ts' | 'tsx'
  /** The name under which other blocks of the page import this one. */
  readonly file: string | null
  /** The written reason for not compiling it; an empty one is an error. */
  readonly ignored: string | null
}

const FENCE = /^(\s*)```(tsx?)(?:[ \t]+(.*))?$/

function settingOf(info: string, name: string): string | null {
  return info.match(new RegExp(`\\b${name}="([^"]*)"`))?.[1] ?? null
}

function wordsOf(info: string): readonly string[] {
  return info.replaceAll(/\w+="[^"]*"/g, '').split(/\s+/)
}

interface FoundBlock extends Pick<DocsBlock, 'page' | 'line' | 'extension'> {
  readonly info: string
  readonly code: readonly string[]
}

function blockAt({ page, line, extension, info, code }: FoundBlock): DocsBlock {
  const words = wordsOf(info)
  const [file, ignored] = [settingOf(info, 'file'), settingOf(info, 'ignore')]
  return {
    page,
    line,
    code: code.join('\n'),
    runs: words.includes('run'),
    continues: words.includes('continue'),
    extension,
    file,
    ignored,
  }
}

/** Every ```ts and ```tsx block of a page. */
export function blocksOf(page: string, text: string): readonly DocsBlock[] {
  const lines = text.split('\n')
  const blocks: DocsBlock[] = []
  for (let index = 0; index < lines.length; index++) {
    const fence = lines[index]?.match(FENCE)
    if (!fence) continue
    const end = lines.findIndex((line, at) => at > index && line.trim() === '```')
    if (end === -1) throw new Error(`${page}:${index + 1} opens a block that never closes`)
    const indent = fence[1]?.length ?? 0
    const code = lines.slice(index + 1, end).map((line) => line.slice(indent))
    const extension = fence[2] === 'tsx' ? 'tsx' : 'ts'
    blocks.push(blockAt({ page, line: index + 1, extension, info: fence[3] ?? '', code }))
    index = end
  }
  return blocks
}

export interface DocsModule {
  readonly path: string
  readonly blocks: readonly DocsBlock[]
  readonly source: string
  /** The part that is executed: up to the last block marked `run`. */
  readonly running: string | null
}

function sourceOf(blocks: readonly DocsBlock[]): string {
  return `${blocks.map((block) => block.code).join('\n')}\nexport {}\n`
}

function moduleOf(blocks: readonly DocsBlock[]): DocsModule {
  const [first] = blocks
  if (first === undefined) throw new Error('a module has at least one block')
  const folder = first.page.replaceAll(/[^A-Za-z0-9]+/g, '-').toLowerCase()
  const name = first.file ?? `line-${first.line}.${first.extension}`
  const end = blocks.map((block) => block.runs).lastIndexOf(true) + 1
  const running = end === 0 ? null : sourceOf(blocks.slice(0, end))
  return { path: `${folder}/${name}`, blocks, source: sourceOf(blocks), running }
}

/** One module for each block that starts something; blocks marked `continue` join the one before them. */
export function modulesOf(blocks: readonly DocsBlock[]): readonly DocsModule[] {
  const groups: DocsBlock[][] = []
  for (const block of blocks.filter(({ ignored }) => ignored === null)) {
    const last = groups.at(-1)
    if (block.continues && last?.[0]?.page === block.page) last.push(block)
    else groups.push([block])
  }
  return groups.map(moduleOf)
}

/** Where a line of a module stands in its page. */
export function originOf(module: DocsModule, line: number): string {
  let before = 0
  for (const block of module.blocks) {
    const length = block.code.split('\n').length
    if (line <= before + length) return `${block.page}:${block.line + line - before}`
    before += length
  }
  return `${module.path}:${line}`
}
