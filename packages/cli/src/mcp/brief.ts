import type { Log, Run, Step } from '@coji/durably'

/** Whoever reads this has little room, and can ask for more. */
const LONGEST = 2000

/** A value as it is, or the beginning of what it is as JSON. */
function brief(value: unknown): unknown {
  const text = JSON.stringify(value) ?? ''
  return text.length <= LONGEST ? value : { beginning: text.slice(0, LONGEST), characters: text.length }
}

function briefText(text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}… (${text.length} characters)`
}

/** A run in a list. */
export function briefRun(run: Run) {
  const { id, jobName, status, tenant, labels, attempt, createdAt, startedAt, finishedAt, waitingFor, progress } = run
  return {
    ...{ id, jobName, status, tenant, labels, attempt, createdAt, startedAt, finishedAt, waitingFor, progress },
    error: briefText(run.error),
    errorCode: run.errorDetail?.code ?? null,
    failedStep: run.errorDetail?.stepName ?? null,
  }
}

/** A run that was asked for. */
export function wholeRun(run: Run) {
  const stack = briefText(run.errorDetail?.stack)
  return { ...run, payload: brief(run.payload), output: brief(run.output), error: briefText(run.error), stack }
}

export function briefStep({ output, checkpoint, error, errorDetail, ...step }: Step) {
  const stack = briefText(errorDetail?.stack)
  return { ...step, output: brief(output), checkpoint: brief(checkpoint), error: briefText(error), stack }
}

export function briefLog({ id, timestamp, level, stepName, message, data }: Log) {
  return { id, timestamp, level, stepName, message: briefText(message), data: brief(data) }
}
