import type { Split, SplitOptions } from './split'

const QUOTE = 34
const COMMA = 44
const LF = 10
const CR = 13

interface Field {
  readonly value: string
  /** Where the field after it begins, or the next record. */
  readonly next: number
  /** `cut`: the text ends before it is known where the field ends. */
  readonly ends: 'field' | 'record' | 'cut'
}

/**
 * CSV records as RFC 4180 has them: fields in quotes may hold commas, line ends and doubled quotes; records end with LF
 * or CRLF. A quote inside a field that did not begin with one is an ordinary character. Blank lines are passed over.
 */
export function splitCsv(text: string, { limit, isLast }: SplitOptions): Split<string[]> {
  const items: string[][] = []
  let consumed = 0
  while (items.length < limit && consumed < text.length) {
    const fields: string[] = []
    let field = readField(text, consumed)
    while (field.ends === 'field') {
      fields.push(field.value)
      field = readField(text, field.next)
    }
    if (field.ends === 'cut' && !isLast) break
    fields.push(field.value)
    consumed = field.next
    if (fields.length > 1 || field.value !== '') items.push(fields)
  }
  return { items, consumed }
}

function readField(text: string, start: number): Field {
  return text.charCodeAt(start) === QUOTE ? readQuoted(text, start) : readPlain(text, start, '')
}

function readQuoted(text: string, start: number): Field {
  let value = ''
  let from = start + 1
  for (;;) {
    const quote = text.indexOf('"', from)
    if (quote < 0) return { value: value + text.slice(from), next: text.length, ends: 'cut' }
    value += text.slice(from, quote)
    if (text.charCodeAt(quote + 1) !== QUOTE) return readPlain(text, quote + 1, value)
    value += '"'
    from = quote + 2
  }
}

/** Up to the next comma or line end; after a closing quote that is at once, unless the file is sloppy. */
function readPlain(text: string, start: number, before: string): Field {
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === COMMA) return { value: before + text.slice(start, at), next: at + 1, ends: 'field' }
    if (code === LF)
      return { value: before + text.slice(start, endBefore(text, start, at)), next: at + 1, ends: 'record' }
  }
  return { value: before + text.slice(start), next: text.length, ends: 'cut' }
}

function endBefore(text: string, start: number, lineEnd: number): number {
  return lineEnd > start && text.charCodeAt(lineEnd - 1) === CR ? lineEnd - 1 : lineEnd
}
