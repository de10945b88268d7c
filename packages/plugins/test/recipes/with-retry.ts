import { InterruptedError, PermanentError, type Plugin } from '@coji/durably-core'

/** Runs a job that failed again at once, up to `attempts` times in all; recorded steps are skipped. */
export function withRetry(attempts: number): Plugin {
  return {
    name: 'retry',
    async aroundRun(run, next) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await next()
        } catch (error) {
          const isFinal = error instanceof PermanentError || error instanceof InterruptedError
          if (isFinal || run.signal.aborted || attempt >= attempts) throw error
        }
      }
    },
  }
}
