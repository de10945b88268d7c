import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { choosePaint, type Paint } from './paint'

/** What a program is connected with. */
export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: Writable
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

/** How a command speaks to whoever called it. */
export interface Terminal {
  readonly paint: Paint
  /** `null`: lines may have any length, since they are not for a screen. */
  readonly width: number | null
  readonly signal: AbortSignal
  /** The result: a line of it, or several. */
  print(text: string): void
  printJson(value: unknown): void
  /** What is not the result. */
  note(text: string): void
  /** `null`: nobody is there to answer. */
  confirm(question: string): Promise<boolean | null>
}

const USUAL_WIDTH = 80

export function createTerminal({ stdin, stdout, stderr, env, signal }: Streams): Terminal {
  const isScreen = stdout.isTTY === true
  const width = Number(env['COLUMNS']) || (stdout.columns ?? USUAL_WIDTH)
  return {
    paint: choosePaint({ isScreen, env }),
    width: isScreen ? width : null,
    signal,
    print: (text) => void stdout.write(`${text}\n`),
    printJson: (value) => void stdout.write(`${JSON.stringify(value, null, isScreen ? 2 : undefined)}\n`),
    note: (text) => void stderr.write(`${text}\n`),
    async confirm(question) {
      if (stdin.isTTY !== true) return null
      const asking = createInterface({ input: stdin, output: stderr })
      try {
        return /^y(es)?$/i.test((await asking.question(`${question} [y/N] `, { signal })).trim())
      } finally {
        asking.close()
      }
    },
  }
}
