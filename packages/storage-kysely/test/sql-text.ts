/** What begins a line, and is followed by what it is about. */
const CLAUSES = [
  ...['with recursive', 'with', 'select', 'from', 'where', 'and', 'or', 'values', 'set', 'union all', 'union'],
  ...['order by', 'group by', 'having', 'limit', 'returning', 'on conflict', 'do update', 'do nothing', 'for update'],
  ...['for share', 'cross join lateral', 'left join', 'cross join', 'join', 'insert into', 'delete from', 'update'],
]

/** Texts stay whole; of the rest, words and brackets are told apart. */
const PARTS = new RegExp(`'(?:[^']|'')*'|"[^"]*"|\\b(?:${CLAUSES.join('|')})\\b|[()]|\\s+|[^\\s()'"]+`, 'g')

interface Line {
  readonly depth: number
  text: string
}

/** What is closed on a line of its own was opened on another one. */
function endsQuery(part: string, depth: number, lines: readonly Line[]): boolean {
  return part === ')' && (lines.at(-1)?.depth ?? 0) > depth
}

/** A statement with a line for each clause, indented by its brackets, so that a change is a change of few lines. */
export function toReadable(sql: string): string {
  const lines: Line[] = [{ depth: 0, text: '' }]
  let depth = 0
  for (const [part] of sql.matchAll(PARTS)) {
    if (part === ')') depth -= 1
    if (CLAUSES.includes(part) || endsQuery(part, depth, lines)) lines.push({ depth, text: part })
    else {
      const line = lines.at(-1) as Line
      line.text += /^\s+$/.test(part) ? ' ' : part
    }
    if (part === '(') depth += 1
  }
  const written = lines.map(({ depth: indent, text }) => ({ indent, text: text.replaceAll(/ +/g, ' ').trim() }))
  return written
    .filter(({ text }) => text !== '')
    .map(({ indent, text }) => `${'  '.repeat(indent)}${text}`)
    .join('\n')
}
