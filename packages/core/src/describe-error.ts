import { cleanText } from './clean-text'
import { ValidationError } from './errors'
import type { ErrorDetail } from './storage'

const MAX_MESSAGE = 8 * 1024
const MAX_STACK = 16 * 1024

/** What is stored of anything thrown. Never throws itself, whatever the thing is. */
export function describeError(thrown: unknown, stepName?: string): { message: string; detail: ErrorDetail } {
  const name = readText(thrown, 'name') ?? 'NonError'
  const code = readText(thrown, 'code')
  const stack = readText(thrown, 'stack')
  return {
    message: cleanText(readText(thrown, 'message') ?? safeString(thrown), MAX_MESSAGE),
    detail: {
      name: cleanText(name, 200),
      ...(code !== undefined && { code: cleanText(code, 200) }),
      ...(stack !== undefined && { stack: cleanText(stack, MAX_STACK) }),
      ...(stepName !== undefined && { stepName }),
      ...(isValidationError(thrown) && { issues: thrown.issues.slice(0, 50) }),
    },
  }
}

function readText(thrown: unknown, key: 'name' | 'message' | 'code' | 'stack'): string | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined
  try {
    const value: unknown = (thrown as Record<string, unknown>)[key]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
  } catch {
    return undefined
  }
}

const NO_TEXT = 'An error that cannot be turned into text'

/** Even `instanceof` throws for a revoked proxy. */
function isValidationError(thrown: unknown): thrown is ValidationError {
  try {
    return thrown instanceof ValidationError
  } catch {
    return false
  }
}

function safeString(thrown: unknown): string {
  try {
    const text = typeof thrown === 'object' && thrown !== null ? JSON.stringify(thrown) : String(thrown)
    return text ?? NO_TEXT
  } catch {
    return NO_TEXT
  }
}
