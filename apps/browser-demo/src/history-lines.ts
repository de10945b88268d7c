import type { Run, Step, StoredEvent } from '@coji/durably'
import type { RunDetail } from './demo-state'
import { formatDuration } from './format'
import { durationOf } from './run-status'

/** One line of what happened to a run: an event, or what the job logged. */
export interface HistoryLine {
  readonly key: string
  readonly timestamp: string
  readonly level: 'event' | 'info' | 'warn' | 'error'
  readonly text: string
}

/** Events and logs in one list, newest first. */
export function historyLines({ run, steps, events, logs }: RunDetail): HistoryLine[] {
  const durations = durationsOf(run, steps)
  const lines: HistoryLine[] = [
    ...events.flatMap((event) => lineOf(event, durations)),
    ...logs.map(({ id, timestamp, level, message, stepName }) => ({
      key: id,
      timestamp,
      level,
      text: stepName === null ? message : `${stepName}: ${message}`,
    })),
  ]
  // Events of one moment come in the order of their numbers, which a stable sort keeps.
  return lines.sort((a, b) => (a.timestamp < b.timestamp ? -1 : Number(a.timestamp > b.timestamp))).reverse()
}

/** The same as everywhere on the page: what an event measured may be a millisecond off. */
interface Durations {
  readonly run: number | null
  readonly steps: ReadonlyMap<string, number>
}

function durationsOf(run: Run, steps: readonly Step[]): Durations {
  const completed = steps.flatMap(({ name, status, startedAt, completedAt }): [string, number][] => {
    return status === 'completed' && completedAt !== null
      ? [[name, Date.parse(completedAt) - Date.parse(startedAt)]]
      : []
  })
  return { run: run.finishedAt === null ? null : durationOf(run, 0), steps: new Map(completed) }
}

function lineOf(event: StoredEvent, durations: Durations): HistoryLine[] {
  const told = wordsOf(event, durations)
  if (told === null) return []
  const isError = event.type === 'run:fail' || event.type === 'step:fail' || event.type === 'run:timeout'
  const isWarning = event.type === 'run:recover' || event.type === 'worker:lease-lost'
  const level = isError ? 'error' : isWarning ? 'warn' : 'event'
  return [{ key: `event ${event.seq}`, timestamp: event.timestamp, level, text: told }]
}

const WORDS: Readonly<Partial<Record<StoredEvent['type'], string>>> = {
  'run:trigger': 'The run was triggered',
  'run:start': 'A worker began an execution',
  'run:suspend': 'The run waits',
  'run:signal': 'A signal came',
  'run:park': 'The run was put aside',
  'run:unpark': 'The run was let go',
  'run:release': 'Its worker gave the run back',
  'run:recover': 'The run was taken from a worker that is gone',
  'run:retry': 'The run was sent to be tried again',
  'worker:lease-lost': 'A worker found that the run is no longer its own',
}

function wordsOf(event: StoredEvent, durations: Durations): string | null {
  const { stepName, error, requested } = event as Partial<Record<string, unknown>>
  switch (event.type) {
    case 'run:complete':
      return `The run completed${tookText(durations.run)}`
    case 'run:fail':
    case 'run:timeout':
      return `The run failed: ${String(error)}`
    case 'run:cancel':
      return requested === true ? 'The run was asked to cancel' : 'The run was cancelled'
    case 'step:complete':
      return `${String(stepName)} completed${tookText(durations.steps.get(String(stepName)) ?? null)}`
    case 'step:fail':
      return `${String(stepName)} failed: ${String(error)}`
    case 'step:restart':
      return `${String(stepName)} began again`
    default:
      return WORDS[event.type] ?? null
  }
}

function tookText(duration: number | null): string {
  return duration !== null ? ` in ${formatDuration(duration)}` : ''
}
