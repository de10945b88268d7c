import { describeError } from './describe-error'
import { PayloadTooLargeError, SerializationError } from './errors'

const MAX_DEPTH = 64

/** What users store is no larger. */
export const MAX_VALUE_BYTES = 1024 * 1024

/**
 * The one codec for everything users store. What JSON would change is refused with the path to it, so that a value
 * read back on another machine is the value that was written. `undefined` as a whole is `null` (SQL NULL), as a
 * property it is dropped; `-0` becomes `0`.
 */
export function encodeValue(value: unknown, what: string, maxBytes = MAX_VALUE_BYTES): Json | null {
  if (value === undefined) return null
  const text = encodeOrExplain(value, what)
  const bytes = utf8Length(text, maxBytes)
  if (bytes > maxBytes) throw new PayloadTooLargeError(what, bytes, maxBytes)
  return text
}

export function decodeValue(text: Json | null): unknown {
  return text === null ? undefined : JSON.parse(text)
}

function encodeOrExplain(value: unknown, what: string): Json {
  try {
    return write(value, 0)
  } catch (error) {
    if (error instanceof Flaw) throw new SerializationError(what, error)
    // A getter that throws, a revoked proxy.
    const reason = `could not be read: ${describeError(error).message}`
    throw new SerializationError(what, { path: '', reason }, { cause: error })
  }
}

/** Why JSON would change a value, and where. The path is put together on the way out, so that good values pay nothing. */
class Flaw {
  path = ''
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }

  isBelow(key: string): this {
    this.path = this.path === '' || this.path.startsWith('[') ? `${key}${this.path}` : `${key}.${this.path}`
    return this
  }
}

/** Checks and writes in one go: what is read twice can be two things. */
function write(value: unknown, depth: number): Json {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'number':
      if (Number.isFinite(value)) return String(value === 0 ? 0 : value)
      throw new Flaw(`${value} is not a JSON number. Leave it out, or store null or text.`)
    case 'object':
      if (value === null) return 'null'
      if (depth >= MAX_DEPTH) throw new Flaw(`is nested deeper than ${MAX_DEPTH} levels, or cyclic`)
      return Array.isArray(value) ? writeArray(value, depth) : writeObject(value, depth)
    default:
      throw new Flaw(`a value of type ${typeof value} cannot be stored as JSON${remedyFor(typeof value)}`)
  }
}

function writeArray(array: readonly unknown[], depth: number): Json {
  if (!isPlain(Object.getPrototypeOf(array)))
    throw new Flaw(`an instance of ${nameOfClass(array)} cannot be stored as JSON${remedyFor(nameOfClass(array))}`)
  if (Object.keys(array).length > array.length) throw new Flaw('is a list with properties of its own')
  let text = '['
  for (let index = 0; index < array.length; index++) {
    if (index > 0) text += ','
    if (!(index in array)) throw new Flaw('is a hole in a list').isBelow(`[${index}]`)
    try {
      text += write(array[index], depth + 1)
    } catch (error) {
      throw error instanceof Flaw ? error.isBelow(`[${index}]`) : error
    }
  }
  return `${text}]`
}

function writeObject(object: object, depth: number): Json {
  const prototype: unknown = Object.getPrototypeOf(object)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new Flaw(`an instance of ${nameOfClass(object)} cannot be stored as JSON${remedyFor(nameOfClass(object))}`)
  }
  if (Object.getOwnPropertySymbols(object).length > 0) throw new Flaw('has a symbol as a key')
  let text = '{'
  for (const key of Object.keys(object)) {
    const property = (object as Record<string, unknown>)[key]
    if (property === undefined) continue
    if (text.length > 1) text += ','
    try {
      text += `${JSON.stringify(key)}:${write(property, depth + 1)}`
    } catch (error) {
      throw error instanceof Flaw ? error.isBelow(key) : error
    }
  }
  return `${text}}`
}

/** Objects and lists of another realm (an iframe, a vm context) have prototypes of their own, but as short a chain. */
function isPlain(prototypeOfArray: unknown): boolean {
  const root: unknown = prototypeOfArray === null ? null : Object.getPrototypeOf(prototypeOfArray)
  return root !== null && Object.getPrototypeOf(root) === null
}

const REMEDIES: ReadonlyMap<string, string> = new Map([
  ['Date', 'Store its ISO text, date.toISOString(), and make the Date where it is used'],
  ['Map', 'Store its entries, [...map], and make the Map where it is used'],
  ['Set', 'Store its items, [...set], and make the Set where it is used'],
  ['bigint', 'Store it as text, and make the bigint where it is used'],
  ['function', 'Leave it out'],
  ['symbol', 'Leave it out'],
])

function remedyFor(kind: string): string {
  return `. ${REMEDIES.get(kind) ?? 'Store the plain values that it is made of'}.`
}

function nameOfClass(object: object): string {
  const { constructor } = object
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class'
}

/** Exact only when it matters: text that cannot exceed the limit is not walked. */
export function utf8Length(text: string, limit: number): number {
  if (text.length * 3 <= limit) return text.length
  let bytes = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) bytes += 1
    else if (unit < 0x800) bytes += 2
    else if (unit >= 0xd800 && unit < 0xdc00) {
      bytes += 4
      index += 1
    } else bytes += 3
  }
  return bytes
}

/** Whether two texts are one value: the order of an object's keys is none of it. */
export function isSameJson(one: Json | null, other: Json | null): boolean {
  if (one === other) return true
  return one !== null && other !== null && isSameValue(JSON.parse(one), JSON.parse(other))
}

function isSameValue(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  const [a, b] = [one, other] as [Record<string, unknown>, Record<string, unknown>]
  return keys.every((key) => Object.hasOwn(b, key) && isSameValue(a[key], b[key]))
}

/** JSON text. */
export type Json = string
