import { guarded } from './guarded'

/** Where errors are written that nobody else hears of. `console` is one. */
export interface Logger {
  error(message: string, ...details: unknown[]): void
}

type ErrorListener = (error: unknown, during: string) => unknown

export interface Reporter {
  listen(listener: ErrorListener): () => void
  report(error: unknown, during: string): void
}

/** Errors go to those who listen; the logger is for when nobody does. */
export function createReporter(logger: Logger | null): Reporter {
  const listeners = new Set<ErrorListener>()
  // Of a logger that fails there is nobody left to tell.
  const log = (message: string, error: unknown) =>
    guarded(
      () => logger?.error(message, error),
      () => {},
    )
  return {
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    report(error, during) {
      if (listeners.size === 0) log(`durably: ${during}:`, error)
      for (const listener of listeners) {
        guarded(
          () => listener(error, during),
          (thrown) => log('durably: an onError listener threw:', thrown),
        )
      }
    },
  }
}
