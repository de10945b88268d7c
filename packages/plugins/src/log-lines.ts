import { LogArchiveError } from '@coji/durably-core'
import type { LogRecord } from '@coji/durably-core/storage'

/** How many logs are read at a time. */
const PAGE = 500

/** A log as a line of JSON; its data are in it as JSON too, so that other programs can read them. */
export function toLine({ data, ...log }: LogRecord): string {
  // A break between the tokens of JSON means as much as a space.
  const rest = data === null ? '' : `,"data":${data.replaceAll(/[\r\n]/g, ' ')}`
  return `${JSON.stringify(log).slice(0, -1)}${rest}}\n`
}

export async function* toLines(pages: AsyncIterable<readonly LogRecord[]>): AsyncIterable<string> {
  for await (const page of pages) if (page.length > 0) yield page.map(toLine).join('')
}

/** The logs in a text that comes in pieces. */
export async function* toPages(text: AsyncIterable<string>, name: string): AsyncIterable<readonly LogRecord[]> {
  let rest = ''
  let page: LogRecord[] = []
  for await (const piece of text) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) page.push(toLog(line, name))
    if (page.length < PAGE) continue
    yield page
    page = []
  }
  if (rest !== '') throw broken(name)
  if (page.length > 0) yield page
}

function toLog(line: string, name: string): LogRecord {
  try {
    const { id, runId, stepName, level, message, timestamp, ...rest } = JSON.parse(line) as Partial<LogRecord>
    if (id === undefined || runId === undefined || level === undefined) throw broken(name)
    if (message === undefined || timestamp === undefined) throw broken(name)
    const data = 'data' in rest ? JSON.stringify(rest.data) : null
    return { id, runId, stepName: stepName ?? null, level, message, data, timestamp }
  } catch (error) {
    throw broken(name, error)
  }
}

export function broken(name: string, cause?: unknown): LogArchiveError {
  if (cause instanceof LogArchiveError) return cause
  return new LogArchiveError('broken', `What the archive of logs has as "${name}" is damaged.`, { cause })
}

export function missing(name: string, cause?: unknown): LogArchiveError {
  return new LogArchiveError('missing', `The archive of logs has no "${name}" any more.`, { cause })
}

/** Names come from a database: none of them may lead out of the archive. */
export function refuseBadName(name: string): void {
  if (/^[\w%-][\w.%-]{0,199}$/.test(name)) return
  throw new LogArchiveError('broken', `"${name.slice(0, 200)}" is no name that an archive of logs has given.`)
}
