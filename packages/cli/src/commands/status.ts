import { RUN_STATUSES, type StatusCounts } from '@coji/durably'
import type { WorkReport } from '@coji/durably/storage'
import { type OpenDatabase, withDatabase } from '../database/open'
import type { CommonOptions } from '../options'
import type { Terminal } from '../terminal/terminal'
import { tame } from '../terminal/paint'
import { paintStatus } from '../terminal/statuses'
import { ago, count, durationOf } from '../terminal/words'

/** `durably status` */
export function showStatus(options: CommonOptions, terminal: Terminal): Promise<void> {
  return withDatabase(options, {}, async (database) => {
    const report = await readStatus(database)
    if (options.json === true) terminal.printJson(report)
    else terminal.print(renderStatus(report, terminal))
  })
}

export type StatusReport = Awaited<ReturnType<typeof readStatus>>

/** Everything at a glance. */
export async function readStatus({ durably, name, version }: OpenDatabase) {
  const { storage } = durably
  const counts = await durably.counts()
  const { at, oldestDue, holders } = await storage.reportWork()
  const pausedJobs = await storage.limits.paused()
  return { database: name, schemaVersion: version, at, counts, oldestDue, workers: holders, pausedJobs }
}

function renderStatus(report: StatusReport, { paint }: Terminal): string {
  const { database, schemaVersion, counts, pausedJobs } = report
  const facts = [
    ['Longest due', describeOldest(report)],
    ['Workers', describeWorkers(report)],
    ...(pausedJobs.length === 0 ? [] : [['Paused jobs', tame([...pausedJobs].join(', '))]]),
  ] as const
  const width = Math.max(...facts.map(([name]) => name.length))
  const indent = ' '.repeat(width + 2)
  return [
    `${paint('bold', database)} ${paint('dim', `· version ${schemaVersion} of the tables`)}`,
    '',
    ...countLines(counts, paint),
    '',
    ...facts.map(([name, text]) => `${paint('bold', name.padEnd(width))}  ${text.replaceAll('\n', `\n${indent}`)}`),
  ].join('\n')
}

/** Those of the cluster are there only where somebody uses them. */
const RARE: readonly string[] = ['assigned', 'orphaned', 'timed_out']

function countLines(counts: StatusCounts, paint: Terminal['paint']): readonly string[] {
  const shown = RUN_STATUSES.filter((status) => counts[status] > 0 || !RARE.includes(status))
  const width = Math.max(...shown.map((status) => String(counts[status]).length))
  return shown.map((status) => {
    const note = status === 'pending' ? waitingNote(counts) : ''
    const number = String(counts[status]).padStart(width)
    return `  ${paintStatus(paint, status, status.padEnd(10))} ${number}${note === '' ? '' : `  ${paint('dim', note)}`}`
  })
}

function waitingNote({ waitsForRetry, parked }: StatusCounts): string {
  const parts = [waitsForRetry > 0 && `${waitsForRetry} after a failed attempt`, parked > 0 && `${parked} parked`]
  return parts.filter((part) => part !== false).join(', ')
}

function describeOldest({ oldestDue, at }: Pick<WorkReport, 'oldestDue' | 'at'>): string {
  if (oldestDue === null) return 'nothing is due'
  const since = durationOf(Date.parse(at) - Date.parse(oldestDue.dueSince))
  return `${oldestDue.id} (${tame(oldestDue.jobName)}), for ${since}`
}

function describeWorkers({ workers, oldestDue, at }: Pick<StatusReport, 'workers' | 'oldestDue' | 'at'>): string {
  const now = Date.parse(at)
  if (workers.length === 0) {
    return `none holds a run${oldestDue === null ? '' : '; is one running that knows the job?'}`
  }
  const lines = workers.map(({ workerId, runs, heardAt, leaseUntil }) => {
    const isLate = Date.parse(leaseUntil) <= now
    const late = isLate ? `; its lease ran out ${ago(leaseUntil, now)}: the next worker that looks takes over` : ''
    return `${tame(workerId)}: ${count(runs, 'run')}, heard of ${ago(heardAt, now)}${late}`
  })
  return lines.join('\n')
}
