import { stripVTControlCharacters } from 'node:util'

/** What a command wrote, of which as much is kept as a model should read: the beginning and the end. */
export interface Output {
  readonly text: string
  readonly bytes: number
}

const KEPT = { first: 12_000, last: 4_000 }

export class OutputReader {
  bytes = 0
  readonly #chunks: Buffer[] = []

  add(chunk: Buffer): void {
    this.bytes += chunk.length
    this.#chunks.push(chunk)
  }

  read(): Output {
    return { text: shortened(readable(Buffer.concat(this.#chunks).toString('utf8'))), bytes: this.bytes }
  }
}

/** What cannot be seen, or turns the direction of text: nothing that steers a terminal or hides in a page is left. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu

export function readable(text: string): string {
  return stripVTControlCharacters(text).replaceAll('\r\n', '\n').replace(UNSEEN, '')
}

function shortened(text: string): string {
  const left = text.length - KEPT.first - KEPT.last
  if (left <= 0) return text
  return `${text.slice(0, KEPT.first)}\n[… ${left} characters left out …]\n${text.slice(-KEPT.last)}`
}
