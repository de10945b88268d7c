/** Assertions without a test runner, so that suites run under vitest, node:test and in a page alike. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

export function assert(condition: unknown, message: string): asserts condition {
  if (condition !== true) throw new AssertionError(message)
}

/** Deep equality of plain values; the message names the first place that differs. */
export function assertEqual(actual: unknown, expected: unknown, what: string): void {
  const difference = firstDifference(actual, expected, '')
  if (difference !== null) throw new AssertionError(`${what}: ${difference}`)
}

/** Like `assertEqual`, for the properties that are expected; others may be anything. */
export function assertMatches<T extends object>(actual: T | null, expected: Partial<T>, what: string): void {
  if (actual === null) throw new AssertionError(`${what}: is null, expected an object`)
  for (const key of Object.keys(expected) as (keyof T & string)[]) {
    const difference = firstDifference(actual[key], expected[key], key)
    if (difference !== null) throw new AssertionError(`${what}: ${difference}`)
  }
}

/** The error the promise rejects with; its `code` must be the given one unless that is `null`. */
export async function assertRejects(promise: Promise<unknown>, code: string | null, what: string): Promise<unknown> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    const found = codeOf(error)
    if (code === null || found === code) return error
    throw new AssertionError(
      `${what}: should reject with ${code}, but did with ${found ?? 'no code'}: ${String(error)}`,
    )
  }
  throw new AssertionError(`${what}: should reject, but resolved with ${show(value)}`)
}

/** The item at the place, which must be there. */
export function itemAt<T>(list: readonly T[], index: number, what: string): T {
  const item = list[index]
  if (item === undefined) throw new AssertionError(`${what}: has ${list.length} items, none at ${index}`)
  return item
}

function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

function firstDifference(actual: unknown, expected: unknown, path: string): string | null {
  if (Object.is(actual, expected)) return null
  if (!isObject(actual) || !isObject(expected) || Array.isArray(actual) !== Array.isArray(expected)) {
    return `${path === '' ? 'value' : path} is ${show(actual)}, expected ${show(expected)}`
  }
  if (Array.isArray(actual) && Array.isArray(expected) && actual.length !== expected.length) {
    return `${path === '' ? 'list' : path} has ${actual.length} items, expected ${expected.length}: ${show(actual)}`
  }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    const difference = firstDifference(actual[key], expected[key], path === '' ? key : `${path}.${key}`)
    if (difference !== null) return difference
  }
  return null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

const SHOWN = 300

function show(value: unknown): string {
  const text = value === undefined ? 'undefined' : (JSON.stringify(value) ?? String(value))
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}… (${text.length} characters)`
}
