const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Style = keyof typeof CODES

/** Colours a text, or leaves it alone. */
export type Paint = (style: Style, text: string) => string

export const plain: Paint = (_style, text) => text

export const ansi: Paint = (style, text) => `\u001b[${CODES[style]}m${text}\u001b[0m`

export interface TerminalParams {
  readonly isTerminal: boolean
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** Whether a line can be written over and coloured. */
export function isCapable({ isTerminal, environment }: TerminalParams): boolean {
  return isTerminal && environment['TERM'] !== 'dumb'
}

/** `wanted` is what the user asked for on the command line. */
export function choosePaint({ wanted, ...terminal }: TerminalParams & { readonly wanted: boolean }): Paint {
  const isRefused = (terminal.environment['NO_COLOR'] ?? '') !== ''
  return wanted && isCapable(terminal) && !isRefused ? ansi : plain
}
