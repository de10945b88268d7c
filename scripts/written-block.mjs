/** The page with this text between the two comments that say that a script writes it. */
export function withBlock(page, name, text) {
  const [start, end] = marksOf(name)
  const [before, rest] = split(page, start)
  const [, after] = split(rest, end)
  return `${before}${start}\n\n${text}\n\n${end}${after}`
}

/** What stands there. */
export function blockOf(page, name) {
  const [start, end] = marksOf(name)
  const [, rest] = split(page, start)
  return split(rest, end)[0].trim()
}

function marksOf(name) {
  return [`<!-- ${name}: written by a script -->`, `<!-- /${name} -->`]
}

function split(text, mark) {
  const at = text.indexOf(mark)
  if (at === -1) throw new Error(`The page has no ${mark}.`)
  return [text.slice(0, at), text.slice(at + mark.length)]
}
