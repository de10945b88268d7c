import {
  decodeValue,
  describeError,
  type ErrorDetail,
  encodeValue,
  type InterruptionReason,
  type Json,
  ParkedError,
  parseWith,
  TimeoutError,
} from '../base'
import { type Engine, isWatched, recorded } from '../engine'
import { type EventInput, type FailedRun, type FailedTry, retryDelayMs, triesOf, type JobDeclaration } from '../job'
import type { CommitAnswer, Failing, Outcome, RunRecord, NewRun } from '../port'
import { restAfter, type Suspended } from '../step'
import { newRunOfEncoded } from '../client'

/** How the job function ended, seen from outside. */
export type Settled =
  | { readonly kind: 'returned'; readonly output: Json | null }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** It waits for something, and nothing else of it is going on. */
  | ({ readonly kind: 'suspended' } & Suspended)
  /** Its code does not fit what is recorded of it. */
  | { readonly kind: 'parked'; readonly reason: string }
  /** It was interrupted, and is not waited for any longer. */
  | { readonly kind: 'abandoned' }

export interface OutcomeParams {
  readonly engine: Engine
  readonly run: RunRecord
  readonly settled: Settled
  readonly reason: InterruptionReason | null
  readonly stepOfError: ReadonlyMap<unknown, string>
  readonly durationMs: number
  readonly heldMs: number
}

/** What to write, and what to say once it is written. */
export interface AnnouncedOutcome {
  readonly outcome: Outcome
  announce(answer: Extract<CommitAnswer, { kept: true }>): void
}

export function outcomeOf(params: OutcomeParams): AnnouncedOutcome {
  const { run, settled, reason } = params
  const ids = { runId: run.id, jobName: run.jobName }
  if (reason === 'cancelled') return announced(params, { kind: 'cancelled' }, cancelEvent(run))
  if (reason === 'timeout') {
    const { message, detail } = describeError(new TimeoutError(`The run took longer than ${run.timeoutMs} ms.`))
    const outcome = { kind: 'timeOut', ...failing(params, 'timed_out', { error: message, detail }) } as const
    return failed(params, outcome, { type: 'run:timeout', ...ids, error: message })
  }
  // Its ctx calls were rejected: what it returns, or throws, may only be its way of dealing with that.
  if (reason === 'lease-lost' || settled.kind === 'abandoned') return release(params)
  if (settled.kind === 'suspended') return suspend(params, settled)
  if (settled.kind === 'parked') return park(params, settled.reason)
  if (settled.kind === 'returned') return complete(params, settled.output)
  // An error after a shutdown may be its consequence: whoever goes on will see whether it is real.
  return reason === 'shutdown' ? release(params) : retryOrFail(params, settled.error)
}

/** What the job returned, as it will be stored. An output that its schema refuses is an error of the job. */
export async function encodeOutput({ jobs }: Engine, jobName: string, returned: unknown): Promise<Settled> {
  const schema = jobs.get(jobName)?.output ?? null
  const what = `The output of job "${jobName}"`
  try {
    const { value } = schema === null ? { value: returned } : await parseWith(schema, returned, what)
    return { kind: 'returned', output: encodeValue(value, what) }
  } catch (error) {
    return { kind: 'threw', error }
  }
}

function release(params: OutcomeParams): AnnouncedOutcome {
  const { id, jobName } = params.run
  return announced(params, { kind: 'release' }, { type: 'run:release', runId: id, jobName })
}

function suspend(params: OutcomeParams, suspended: Extract<Settled, { kind: 'suspended' }>): AnnouncedOutcome {
  const { id, jobName } = params.run
  const { steps, wakesSeen, wakesWanted, children } = suspended
  const restMs = restAfter(params.heldMs, children)
  const waitingFor = { kind: 'steps', steps } as const
  return announced(
    params,
    { kind: 'suspend', steps, wakesSeen, wakesWanted, restMs },
    { type: 'run:suspend', runId: id, jobName, waitingFor },
  )
}

function park(params: OutcomeParams, reason: string): AnnouncedOutcome {
  const { id, jobName } = params.run
  const parked = announced(params, { kind: 'park', reason }, { type: 'run:park', runId: id, jobName, reason })
  return {
    ...parked,
    announce(answer) {
      parked.announce(answer)
      if (answer.status !== 'cancelled') reportParked(params, reason)
    },
  }
}

/** Nobody looks for runs that wait. A deploy that parks one may park thousands: the others of the job are not news. */
function reportParked({ engine, run: { id, jobName } }: OutcomeParams, reason: string): void {
  if (engine.parkedJobs.has(jobName)) return
  engine.parkedJobs.add(jobName)
  const advice = `Mend it and call durably.unpark("${id}"), or end it: durably.failParked("${id}").`
  const others = 'Other runs of this job that are parked are told of by the event run:park only.'
  engine.reportError(
    new ParkedError(`Run ${id} of job "${jobName}" is parked: ${reason} ${advice} ${others}`),
    `run ${id}`,
  )
}

function complete(params: OutcomeParams, output: Json | null): AnnouncedOutcome {
  const { engine, run, durationMs } = params
  const shown = isWatched(engine, 'run:complete') ? decodeValue(output) : undefined
  const event = {
    type: 'run:complete',
    runId: run.id,
    jobName: run.jobName,
    output: shown,
    duration: durationMs,
  } as const
  return announced(params, { kind: 'complete', output }, event)
}

function retryOrFail(params: OutcomeParams, error: unknown): AnnouncedOutcome {
  const { engine, run } = params
  const policy = engine.jobs.get(run.jobName)?.retry ?? null
  const { random } = engine.environment
  const attempt = triesOf(run, policy?.countCrashes === true)
  const { delayMs, cause } = judged({ policy, attempt, error, random })
  if (delayMs === null) return fail(params, cause)
  const { message, detail } = describeError(error, params.stepOfError.get(error))
  const ids = { runId: run.id, jobName: run.jobName }
  const event = { type: 'run:retry', ...ids, byHand: false, error: message, delayMs } as const
  return announced(params, { kind: 'retryLater', delayMs, error: message, detail }, event)
}

/** A policy that throws is an error of the job like any other, and there is nobody left to ask whether to try again. */
function judged(failed: FailedTry): { readonly delayMs: number | null; readonly cause: unknown } {
  try {
    return { delayMs: retryDelayMs(failed), cause: failed.error }
  } catch (error) {
    return { delayMs: null, cause: error }
  }
}

function fail(params: OutcomeParams, error: unknown): AnnouncedOutcome {
  const { run, stepOfError } = params
  const stepName = stepOfError.get(error) ?? null
  const { message, detail } = describeError(error, stepName ?? undefined)
  const ids = { runId: run.id, jobName: run.jobName }
  const event = { type: 'run:fail', ...ids, error: message, failedStepName: stepName } as const
  return failed(params, { kind: 'fail', ...failing(params, 'failed', { error: message, detail }) }, event)
}

/** As `announced`, of a run that may call another one with it. */
function failed(params: OutcomeParams, outcome: Bare<Outcome> & Failing, event: EventInput): AnnouncedOutcome {
  const { onFailure = null } = outcome
  const ended = announced(params, outcome, event)
  if (onFailure === null) return ended
  return {
    ...ended,
    announce(answer) {
      ended.announce(answer)
      if (answer.status !== 'cancelled') announceFailureRun(params.engine, onFailure)
    },
  }
}

function failing({ engine, run }: OutcomeParams, status: FailedRun['status'], failure: Failure) {
  const handler = engine.jobs.get(run.jobName)?.onFailure ?? null
  const onFailure = handler === null ? null : newFailureRun(engine, handler, { run, status, ...failure })
  return { ...failure, onFailure }
}

function cancelEvent(run: RunRecord): EventInput {
  return { type: 'run:cancel', runId: run.id, jobName: run.jobName, requested: false }
}

interface Failure {
  readonly error: string
  readonly detail: ErrorDetail
}

type Bare<T> = T extends unknown ? Omit<T, 'events' | 'eventsIfCancelled'> : never

function announced({ engine, run }: OutcomeParams, outcome: Bare<Outcome>, event: EventInput): AnnouncedOutcome {
  const ifCancelled = cancelEvent(run)
  return {
    outcome: Object.assign(outcome, {
      events: recorded(engine, event),
      eventsIfCancelled: recorded(engine, ifCancelled),
    }) as Outcome,
    announce(answer) {
      const happened = answer.status === 'cancelled' ? ifCancelled : event
      engine.events.emit(happened, engine.plugins.recordsEvent(happened.type) ? answer.seq : undefined)
    },
  }
}

interface EndedByFailure extends Failure {
  readonly run: RunRecord
  readonly status: FailedRun['status']
}

/** A run of the job that a failure calls, to be created in the commit that ends the run. */
function newFailureRun(
  engine: Engine,
  handler: JobDeclaration,
  { run, status, error, detail }: EndedByFailure,
): NewRun {
  const { own: _own, ...errorDetail } = detail
  const { id: runId, jobName, jobVersion, attempt, tenant, labels } = run
  const failed: FailedRun = { runId, jobName, jobVersion, status, error, errorDetail, attempt, tenant, labels }
  const job = engine.jobs.get(handler.name) ?? handler
  const payload = encodeValue(failed, `The payload of job "${job.name}"`)
  return {
    ...newRunOfEncoded({ engine, job, payload, options: { tenant } }),
    parentRunId: runId,
    traceParent: run.traceParent ?? null,
  }
}

function announceFailureRun({ events }: Engine, { id: runId, jobName, payload }: NewRun): void {
  events.emit({ type: 'run:trigger', runId, jobName, payload: decodeValue(payload) })
}
