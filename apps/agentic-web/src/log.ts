import type { Durably, EventType } from '@coji/durably'

export type Level = 'info' | 'warn' | 'error'

/** One line of JSON for each thing that happened; nothing that users say, and no key, is ever in one. */
export type Log = (level: Level, message: string, fields?: Readonly<Record<string, unknown>>) => void

export function createLog(service: string, write: (line: string) => void = (line) => process.stdout.write(line)): Log {
  return (level, message, fields = {}) => {
    write(`${JSON.stringify({ time: new Date().toISOString(), level, service, message, ...fields })}\n`)
  }
}

const TOLD = {
  'run:start': 'info',
  'run:complete': 'info',
  'run:cancel': 'info',
  'run:recover': 'warn',
  'run:release': 'info',
  'run:timeout': 'warn',
  'run:park': 'warn',
} as const satisfies Partial<Record<EventType, Level>>

/** Tells what becomes of runs in this process, by their ids. */
export function logRuns(durably: Durably, log: Log): void {
  for (const [type, level] of Object.entries(TOLD) as [keyof typeof TOLD, Level][]) {
    durably.on(type, ({ runId }) => log(level, type, { run_id: runId }))
  }
  durably.on('run:fail', ({ runId, failedStepName }) => {
    log('warn', 'run:fail', { run_id: runId, step: failedStepName })
  })
  durably.on('worker:error', ({ during, error, code }) => log('error', 'worker:error', { during, error, code }))
  durably.onError((error) => log('error', 'unexpected', { error: String(Object(error).stack ?? error) }))
}
