import type { Plugin } from '@coji/durably-core'

type Report = (error: unknown, context: Readonly<Record<string, unknown>>) => void

/** Hands every error of a job, and those of the worker itself, to a service like Sentry. */
export function withErrorReporting(report: Report): Plugin {
  return {
    name: 'error-reporting',
    async aroundRun(run, next) {
      try {
        return await next()
      } catch (error) {
        // A run that was cancelled or handed over did not fail.
        if (!run.signal.aborted) report(error, { runId: run.runId, jobName: run.jobName, attempt: run.attempt })
        throw error
      }
    },
    install(durably) {
      return durably.onError((error, during) => report(error, { during }))
    },
  }
}
