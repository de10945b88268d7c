import type { Run } from '@coji/durably'
import { fromCursor, toCursor } from '../cursor'
import { withDatabase } from '../database/open'
import { type CommonOptions, type FilterOptions, toFilter } from '../options'
import { type Column, renderTable } from '../terminal/table'
import { paintStatus } from '../terminal/statuses'
import type { Terminal } from '../terminal/terminal'
import { ago, between } from '../terminal/words'

export interface RunsOptions extends CommonOptions, FilterOptions {
  readonly limit: number
  readonly cursor?: string
}

/** `durably runs` */
export function listRuns(options: RunsOptions, terminal: Terminal): Promise<void> {
  const place = options.cursor === undefined ? {} : { cursor: toCursor(options.cursor) }
  return withDatabase(options, {}, async ({ durably }) => {
    const found = await durably.getRuns({ ...toFilter(options), ...place, limit: options.limit + 1 })
    const runs = found.slice(0, options.limit)
    const last = runs.at(-1)
    const next = found.length > runs.length && last !== undefined ? fromCursor(last) : null
    if (options.json === true) terminal.printJson({ runs, next })
    else tell(runs, next, terminal)
  })
}

function tell(runs: readonly Run[], next: string | null, terminal: Terminal): void {
  if (runs.length === 0) terminal.note('No run is like that.')
  else terminal.print(renderRuns(runs, terminal))
  if (next !== null) terminal.note(terminal.paint('dim', `There are more: --cursor ${next}`))
}

export function renderRuns(runs: readonly Run[], { paint, width }: Pick<Terminal, 'paint' | 'width'>): string {
  return renderTable(columns(paint, Date.now()), runs, { width, titlePaint: (text) => paint('dim', text) })
}

function columns(paint: Terminal['paint'], now: number): readonly Column<Run>[] {
  return [
    { title: 'RUN', value: ({ id }) => id },
    { title: 'STATUS', value: ({ status }) => status, paint: (text, { status }) => paintStatus(paint, status, text) },
    { title: 'JOB', value: ({ jobName }) => jobName, least: 8 },
    { title: 'TRIGGERED', value: ({ createdAt }) => ago(createdAt, now), isNumber: true },
    { title: 'TOOK', value: (run) => tookOf(run, now), isNumber: true },
    { title: 'ABOUT', value: aboutOf, least: 5 },
  ]
}

/** From its start to its end, or to now. */
function tookOf({ startedAt, finishedAt, status }: Run, now: number): string {
  const until = finishedAt ?? (status === 'running' ? new Date(now).toISOString() : null)
  return between(startedAt, until) ?? ''
}

/** What distinguishes it from others of its status. */
function aboutOf({ error, waitingFor, progress, attempt }: Run): string {
  if (error !== null) return attempt > 1 ? `attempt ${attempt}: ${error}` : error
  if (waitingFor?.kind === 'steps') return `waits for ${waitingFor.steps.join(', ')}`
  if (waitingFor?.kind === 'unpark') return `parked: ${waitingFor.reason}`
  if (progress === null) return ''
  const { current, total, message } = progress
  return [total === undefined ? String(current) : `${current}/${total}`, message].filter(Boolean).join(' ')
}
