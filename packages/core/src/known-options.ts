import { InvalidOptionError } from './errors'

/** Every name of an options type, and no other: the compiler sees to it. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>

/** Without this a misspelled option would have no effect, and nobody would be told. */
export function refuseUnknownOptions(what: string, given: object, known: Readonly<Record<string, true>>): void {
  if (typeof given !== 'object' || given === null) {
    throw new InvalidOptionError(`${what} takes its options as an object, not ${String(given)}.`)
  }
  for (const name in given) if (known[name] !== true) throw unknownOption(what, name, Object.keys(known))
}

function unknownOption(what: string, name: string, known: readonly string[]): InvalidOptionError {
  const nearest = nearestOf(name, known)
  const hint = nearest === null ? `There are ${known.join(', ')}.` : `Did you mean "${nearest}"?`
  return new InvalidOptionError(`${what} knows no option "${name}". ${hint}`)
}

/** The known name that most likely was meant; `null` when all are too different. */
function nearestOf(name: string, known: readonly string[]): string | null {
  let nearest: string | null = null
  let least = Math.ceil(name.length * 0.4) + 1
  for (const each of known) {
    const distance = editsBetween(name.toLowerCase(), each.toLowerCase())
    if (distance >= least) continue
    least = distance
    nearest = each
  }
  return nearest
}

/** How many letters have to be put in, taken out or exchanged to make one text of the other. */
function editsBetween(one: string, other: string): number {
  let previous = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const exchanged = (previous[column - 1] ?? 0) + (one[row - 1] === other[column - 1] ? 0 : 1)
      current.push(Math.min(exchanged, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[other.length] ?? 0
}
