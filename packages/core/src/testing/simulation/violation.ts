/** Something happened that must not. The message says what, to which run, and what should have happened. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

export function must(condition: boolean, message: () => string): void {
  if (!condition) throw new Violation(message())
}

/** For values that JSON shows. */
export function mustEqual(actual: unknown, expected: unknown, what: string): void {
  if (Object.is(actual, expected)) return
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (found !== wanted) throw new Violation(`${what} is ${found}, expected ${wanted}`)
}
