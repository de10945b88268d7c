export interface SplitOptions {
  /** Stop after so many items. */
  readonly limit: number
  /** Whether the text ends where the file ends: only then is an item without a line end complete. */
  readonly isLast: boolean
}

/** Complete items at the start of a text, and how many characters they take. */
export interface Split<T> {
  readonly items: T[]
  readonly consumed: number
}

export type Splitter<T> = (text: string, options: SplitOptions) => Split<T>

/** Lines ended by LF or CRLF; blank ones are passed over. */
export function splitLines(text: string, { limit, isLast }: SplitOptions): Split<string> {
  const items: string[] = []
  let consumed = 0
  while (items.length < limit && consumed < text.length) {
    const end = text.indexOf('\n', consumed)
    if (end < 0 && !isLast) break
    const line = text.slice(consumed, end < 0 ? text.length : end).replace(/\r$/, '')
    consumed = end < 0 ? text.length : end + 1
    if (line.trim() !== '') items.push(line)
  }
  return { items, consumed }
}
