import { cleanText } from './describe-error'

const MAX_LOG_LENGTH = 64 * 1024
const MAX_DEPTH = 8
const MAX_PARTS = 5000

/**
 * Log data is for people, and a log line must never fail a job: what JSON cannot carry (errors, dates, maps, cycles,
 * big integers) is written as text, and what is too deep or too long is cut.
 */
export function toLogData(data: unknown): unknown {
  if (data === undefined) return undefined
  try {
    const readable = new LogReader().read(data, 0)
    const text = JSON.stringify(readable)
    return text.length > MAX_LOG_LENGTH ? `${cleanText(text, MAX_LOG_LENGTH)}…` : readable
  } catch (error) {
    return `[log data that cannot be read: ${toLogText(error)}]`
  }
}

export function toLogText(message: unknown): string {
  try {
    return cleanText(String(message), MAX_LOG_LENGTH)
  } catch {
    return '[text that cannot be read]'
  }
}

/** Walks data once, as far as the budget goes. */
class LogReader {
  #parts = 0

  read(value: unknown, depth: number): unknown {
    this.#parts += 1
    switch (typeof value) {
      case 'string':
        return cleanText(value, MAX_LOG_LENGTH)
      case 'boolean':
        return value
      case 'number':
        return Number.isFinite(value) ? value : String(value)
      case 'object':
        return value === null ? null : this.#readObject(value, depth)
      case 'undefined':
        return undefined
      default:
        return String(value)
    }
  }

  #readObject(value: object, depth: number): unknown {
    if (value instanceof Error) return readError(value)
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
    if (depth >= MAX_DEPTH || this.#parts > MAX_PARTS) return '[…]'
    if (Array.isArray(value)) return this.#readList(value, depth)
    if (value instanceof Set) return this.#readList([...value], depth)
    const entries =
      value instanceof Map ? [...value].map(([key, item]) => [toLogText(key), item]) : Object.entries(value)
    return Object.fromEntries(this.#withinBudget(entries).map(([key, item]) => [key, this.read(item, depth + 1)]))
  }

  #readList(list: readonly unknown[], depth: number): unknown {
    return Array.from(this.#withinBudget(list), (item) => this.read(item, depth + 1) ?? null)
  }

  #withinBudget<T>(list: readonly T[]): readonly T[] {
    return list.slice(0, Math.max(0, MAX_PARTS - this.#parts))
  }
}

function readError({ name, message, stack = '' }: Error) {
  return { name: toLogText(name), message: toLogText(message), stack: toLogText(stack) }
}
