const FIRST_DELAY_MS = 500
const LONGEST_DELAY_MS = 15_000

/** After how long to try again what failed so many times in a row. */
export function delayAfter(failures: number): number {
  const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS)
  return delayMs * (0.75 + Math.random() / 2)
}

export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

function codeOf(error: unknown): unknown {
  return Object(error).code
}

/** The storage keeps no events, or none of this run. */
export function isWithoutHistory(error: unknown): boolean {
  return codeOf(error) === 'HISTORY_REQUIRED' || codeOf(error) === 'CAPABILITY_MISSING'
}

/** There is nothing to wait for: asking again will give the same answer. */
export function isFinal(error: unknown): boolean {
  return isWithoutHistory(error) || ['NOT_FOUND', 'UNAUTHORIZED', 'FORBIDDEN'].includes(String(codeOf(error)))
}
