import { tame } from './paint'

export interface Column<T> {
  readonly title: string
  readonly value: (row: T) => string
  /** Gives up room where there is too little, down to so many characters. */
  readonly least?: number
  readonly isNumber?: boolean
  readonly paint?: (text: string, row: T) => string
}

const GAP = 2

/** Rows below their titles; in `width` characters, where there is a width. */
export function renderTable<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  { width, titlePaint }: { readonly width: number | null; readonly titlePaint: (text: string) => string },
): string {
  const cells = rows.map((row) => columns.map(({ value }) => tame(value(row))))
  const wanted = columns.map(({ title }, at) =>
    Math.max(title.length, ...cells.map((line) => lengthOf(line[at] ?? ''))),
  )
  const widths = width === null ? wanted : fitted(columns, wanted, width)
  const line = (texts: readonly string[], paint: (text: string, at: number) => string) =>
    texts
      .map((text, at) => paint(padded(text, widths[at] ?? 0, columns[at]?.isNumber === true), at))
      .join(' '.repeat(GAP))
      .trimEnd()
  const head = titlePaint(
    line(
      columns.map(({ title }) => title),
      (text) => text,
    ),
  )
  const body = cells.map((texts, index) =>
    line(texts, (text, at) => columns[at]?.paint?.(text, rows[index] as T) ?? text),
  )
  return [head, ...body].join('\n')
}

/** The widest column that may shrink does so first. */
function fitted<T>(columns: readonly Column<T>[], wanted: readonly number[], width: number): readonly number[] {
  const widths = [...wanted]
  const total = () => widths.reduce((sum, each) => sum + each, 0) + GAP * (widths.length - 1)
  for (let over = total() - width; over > 0; over = total() - width) {
    const spare = columns.map(({ least }, at) => (least === undefined ? 0 : (widths[at] ?? 0) - least))
    const at = spare.indexOf(Math.max(...spare))
    const most = spare[at] ?? 0
    if (most <= 0) break
    widths[at] = (widths[at] ?? 0) - 1
  }
  return widths
}

function padded(text: string, width: number, isNumber: boolean): string {
  const cut = shorten(text, width)
  const room = ' '.repeat(Math.max(0, width - lengthOf(cut)))
  return isNumber ? room + cut : cut + room
}

export function shorten(text: string, width: number | null): string {
  if (width === null || lengthOf(text) <= width) return text
  let room = width - 1
  const kept = [...text].findIndex((character) => {
    room -= widthOf(character)
    return room < 0
  })
  return width < 1 ? '' : `${[...text].slice(0, kept).join('')}…`
}

function lengthOf(text: string): number {
  let length = 0
  for (const character of text) length += widthOf(character)
  return length
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u

/** Characters of Chinese, Japanese and Korean take two places. */
function widthOf(character: string): number {
  if (character < '\u0300') return 1
  if (/\p{Mark}/u.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}
