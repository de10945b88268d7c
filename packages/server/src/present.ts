import type { Log, Run, Step, StoredEvent } from '@coji/durably-core'
import type { RedactedField, Settings } from './options'
import type { ServedMessage, ServedSchedule } from './wire-cluster'

type Of = RedactedField['run']
type Field = RedactedField['field']

/** Turns what the engine has into what leaves the server: nothing else does. */
export interface Presenter {
  run(run: Run): unknown
  step(step: Step, of: Of): unknown
  log(log: Log, of: Of): unknown
  event(event: StoredEvent, of: Of): unknown
  explanation(text: string, of: Of): string
  schedule(schedule: ServedSchedule): unknown
  message(message: ServedMessage): unknown
}

const AS_IT_IS: Presenter = {
  run: (run) => run,
  step: (step) => step,
  log: (log) => log,
  event: (event) => event,
  explanation: (text) => text,
  schedule: shownSchedule,
  message: (message) => message,
}

const OF_RUN: readonly Field[] = ['payload', 'output', 'error', 'errorDetail', 'progress']
const OF_STEP: readonly Field[] = ['output', 'error', 'errorDetail', 'checkpoint']
const OF_LOG: readonly Field[] = ['message', 'data']
const OF_EVENT: readonly Field[] = ['payload', 'output', 'error', 'progress', 'chunk', 'message', 'data']

export function createPresenter({ redact: given }: Pick<Settings, 'redact'>): Presenter {
  if (given === null) return AS_IT_IS
  const redact: typeof given = (value, field) => {
    const shown = given(value, field)
    if (typeof (shown as PromiseLike<unknown> | null | undefined)?.then !== 'function') return shown
    void Promise.resolve(shown).catch(() => {})
    throw new TypeError('redact() answers at once, not with a promise.')
  }
  const show = (thing: object, fields: readonly Field[], of: Of): unknown => {
    const shown: Record<string, unknown> = { ...thing }
    for (const field of fields) {
      const value = shown[field]
      if (value !== undefined && value !== null) shown[field] = redact(value, { run: named(of), field })
    }
    return shown
  }
  return {
    run: (run) => show(run, OF_RUN, run),
    step: (step, of) => show(step, OF_STEP, of),
    log: (log, of) => show(log, OF_LOG, of),
    event: (event, of) => show(event, OF_EVENT, of),
    explanation: (text, of) => String(redact(text, { run: named(of), field: 'explanation' })),
    schedule: (schedule) => show(shownSchedule(schedule), ['payload'], { ...schedule, id: '' }),
    message: (message) => show(message, ['payload'], { id: '', jobName: '', tenant: message.tenant }),
  }
}

/** What a schedule has beside that is for the code that defines it. */
function shownSchedule(schedule: ServedSchedule): ServedSchedule {
  const { id, name, tenant, jobName, payload, timing, source, pausedBecause } = schedule
  const { nextAt, firedUntil, firedCount, missedCount, createdAt, updatedAt, endedAt } = schedule
  const times = { nextAt, firedUntil, firedCount, missedCount, createdAt, updatedAt, endedAt }
  return { id, name, tenant, jobName, payload, timing, source, pausedBecause, ...times }
}

function named({ id, jobName, tenant }: Of): Of {
  return { id, jobName, tenant }
}
