import { InvalidOptionError } from './errors'

/** Every name of an options type, and no other: the compiler sees to it. */
export type OptionNames<T> = Readonly<Record<T extends unknown ? keyof T : never, true>>

/** Names of options, of whichever type they are. */
export type KnownOptions = Readonly<Record<string, true>>

/** Without this a misspelled option would have no effect, and nobody would be told. */
export function refuseUnknownOptions(what: string, given: object, known: KnownOptions): void {
  requireObject(what, given)
  for (const name in given) if (known[name] !== true) throw unknownOption(what, name, known)
}

/** For options that are handed on to a library, which may have more of them: refuses what is all but a known name. */
export function refuseMisspelledOptions(what: string, given: object, known: KnownOptions): void {
  requireObject(what, given)
  for (const name in given) {
    if (known[name] !== true && nearestOf(name, known, 1) !== null) throw unknownOption(what, name, known)
  }
}

function requireObject(what: string, given: unknown): void {
  const kind = kindOf(given)
  if (kind === 'Object' || kind === 'Module') return
  throw new InvalidOptionError(`${what} takes its options as an object, not ${inWords(given, kind)}.`)
}

/** 'Object' for objects and instances of classes; lists, dates, maps, promises and their like have names of their own. */
function kindOf(given: unknown): string {
  return typeof given === 'object' && given !== null ? Object.prototype.toString.call(given).slice(8, -1) : ''
}

function inWords(given: unknown, kind: string): string {
  // A text may be the address of a database, with a password in it.
  if (typeof given === 'string') return 'a text'
  return kind === '' ? String(given) : `a value of type ${kind}`
}

function unknownOption(what: string, name: string, known: KnownOptions): InvalidOptionError {
  const nearest = nearestOf(name, known, editsOfSlips(name))
  const hint = nearest === null ? `There are ${Object.keys(known).join(', ')}.` : `Did you mean "${nearest}"?`
  return new InvalidOptionError(`${what} knows no option "${name}". ${hint}`)
}

/** The known name that most likely was meant; `null` when all are further away than so many letters. */
function nearestOf(name: string, known: KnownOptions, mostEdits: number): string | null {
  let nearest: string | null = null
  let least = mostEdits + 1
  for (const each of Object.keys(known)) {
    const distance = editsBetween(name.toLowerCase(), each.toLowerCase())
    if (distance >= least) continue
    least = distance
    nearest = each
  }
  return nearest
}

/** Three letters of seven: of a short name a few others always differ by half of it. */
function editsOfSlips(name: string): number {
  return Math.max(1, Math.floor((name.length * 3) / 7))
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
