import { type ErrorDetail, InvalidOptionError, type StandardSchema } from '../base'
import { isDeclaration, type JobDeclaration } from './declare-job'

/** What a job that is called when a run has failed gets as its payload. */
export interface FailedRun {
  readonly runId: string
  readonly jobName: string
  readonly jobVersion: string | null
  readonly status: 'failed' | 'timed_out'
  /** Its message. */
  readonly error: string
  readonly errorDetail: Omit<ErrorDetail, 'own'>
  /** Which attempt it was, from 1. */
  readonly attempt: number
  readonly tenant: string
  readonly labels: Readonly<Record<string, string>>
}

/** The `input` of a job that is called when a run has failed. */
export const failedRun: StandardSchema<FailedRun> = {
  '~standard': {
    version: 1,
    vendor: 'durably',
    validate: (value) =>
      typeof (value as Partial<FailedRun> | null | undefined)?.runId === 'string'
        ? { value: value as FailedRun }
        : { issues: [{ message: 'It is no failed run.' }] },
  },
}

/** A job whose input takes a `FailedRun`. */
export type FailureHandler = JobDeclaration & {
  readonly types?: { readonly takes?: (input: FailedRun) => void }
}

export function requireFailureHandler(given: FailureHandler | undefined, what: string): JobDeclaration | null {
  if (given === undefined) return null
  if (!isDeclaration(given)) {
    throw new InvalidOptionError(`${what}: onFailure must be a job made by defineJob() or declareJob().`)
  }
  refuseChain(what, given)
  return given
}

/** A failure calls one job. What is called for failures of that one too could go on for ever. */
export function refuseChain(what: string, handler: JobDeclaration & { readonly onFailure?: unknown }): void {
  if ((handler.onFailure ?? null) === null) return
  throw new InvalidOptionError(
    `${what}: onFailure calls job "${handler.name}", which must not have an onFailure of its own.`,
  )
}
