import { isEnded, type Log, type Run } from '@coji/durably'
import { setTimeout as pause } from 'node:timers/promises'
import { findRun } from '../database/find-run'
import { type OpenDatabase, withDatabase } from '../database/open'
import type { CommonOptions } from '../options'
import { tame } from '../terminal/paint'
import { paintStatus } from '../terminal/statuses'
import type { Terminal } from '../terminal/terminal'

export interface LogsOptions extends CommonOptions {
  readonly follow?: boolean
}

const PAGE = 500
const LOOK_EVERY_MS = 500

/** `durably logs <id>` */
export function showLogs(id: string, options: LogsOptions, terminal: Terminal): Promise<void> {
  return withDatabase(options, {}, async (database) => {
    const run = await findRun(database, id)
    const tell = (log: Log) =>
      options.json === true ? terminal.print(JSON.stringify(log)) : terminal.print(line(log, terminal))
    const told = await (options.follow === true
      ? follow(database, run, { tell, terminal })
      : tellAll(database, run, { tell }))
    if (told.lines === 0) terminal.note(nothingLogged(told.run))
    else if (options.follow === true) terminal.note(ending(told.run, terminal))
  })
}

interface Told {
  readonly lines: number
  /** As it was when it was last looked at. */
  readonly run: Run
}

interface Telling {
  readonly tell: (log: Log) => void
  readonly after?: string | undefined
}

async function tellAll(
  { durably }: OpenDatabase,
  run: Run,
  { tell, after }: Telling,
): Promise<Told & { last?: string | undefined }> {
  let [lines, last] = [0, after]
  for (;;) {
    const logs = await durably.getLogs(run.id, { limit: PAGE, ...(last !== undefined && { after: last }) })
    for (const log of logs) tell(log)
    lines += logs.length
    last = logs.at(-1)?.id ?? last
    if (logs.length < PAGE) return { lines, run, last }
  }
}

/** Until the run has ended. What was logged before that is there when the end is. */
async function follow(
  database: OpenDatabase,
  run: Run,
  { tell, terminal }: Telling & { terminal: Terminal },
): Promise<Told> {
  let lines = 0
  let after: string | undefined
  for (;;) {
    const now = (await database.durably.getRun(run.id)) ?? run
    const told = await tellAll(database, now, { tell, after })
    lines += told.lines
    after = told.last
    if (isEnded(now.status)) return { lines, run: now }
    await pause(LOOK_EVERY_MS, undefined, { signal: terminal.signal })
  }
}

function line({ timestamp, level, stepName, message, data }: Log, { paint }: Terminal): string {
  const style = level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'dim'
  const step = stepName === null ? '' : ` ${paint('cyan', tame(stepName))}`
  const rest = data === undefined || data === null ? '' : ` ${paint('dim', tame(JSON.stringify(data)))}`
  return `${paint('dim', timestamp)} ${paint(style, level.padEnd(5))}${step} ${tame(message)}${rest}`
}

function nothingLogged({ id, lastEventSequence }: Run): string {
  const why = lastEventSequence === 0 ? ' Logs are kept where the application uses withLogPersistence().' : ''
  return `Run ${id} has logged nothing.${why}`
}

function ending({ id, status, error }: Run, { paint }: Terminal): string {
  return `Run ${id} is ${paintStatus(paint, status)}${error === null ? '.' : `: ${tame(error)}`}`
}
