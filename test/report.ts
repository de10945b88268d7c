import { hostProcess } from './host-process.ts'

export interface SuiteReport {
  readonly suite: string
  readonly [key: string]: string | number
}

/** Adds a line to the summary that `npm test` prints at its end: which suite, how many runs, seeds, kills. */
export function reportSuite(report: SuiteReport): void {
  const path = hostProcess.env['DURABLY_REPORT']
  if (path === undefined) return
  hostProcess.getBuiltinModule('node:fs').appendFileSync(path, `${JSON.stringify(report)}\n`)
}
