import { stripVTControlCharacters } from 'node:util'

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const

export type Style = keyof typeof CODES

/** Colours a text, or leaves it alone. */
export type Paint = (style: Style, text: string) => string

interface Screen {
  readonly isScreen: boolean
  readonly env: Readonly<Record<string, string | undefined>>
}

/** As https://no-color.org has it. */
export function choosePaint({ isScreen, env }: Screen): Paint {
  const isWanted = isScreen && env['TERM'] !== 'dumb' && (env['NO_COLOR'] ?? '') === ''
  return isWanted ? (style, text) => `\u001b[${CODES[style]}m${text}\u001b[0m` : (_style, text) => text
}

/** What jobs wrote stays on its line, and gives the terminal no orders. */
export function tame(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that a terminal obeys
  return stripVTControlCharacters(text).replace(/\s*[\u0000-\u001f\u007f-\u009f]+\s*/g, ' ')
}

/** The same for what has lines of its own. */
export function tameLines(text: string): string {
  return text.split('\n').map(tame).join('\n')
}
