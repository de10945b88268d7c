import { type CommitLine, RunWriter } from '../commit'
import {
  type CommitAnswer,
  isSuspect,
  type Lease,
  type Outcome,
  type RenewAnswer,
  type RunRecord,
  type StepRecord,
  type Storage,
} from '../port'
import {
  createContext,
  createInterruption,
  createLogs,
  createProgress,
  type Interruption,
  LookTogether,
  NO_ATTEMPT,
  OpenCalls,
  type Pass,
  type RecordedStep,
  type StepScope,
  type Suspended,
  Suspension,
} from '../step'
import { askPatiently, type Engine, isWatched, leaseMsOf, reportTrouble, type RunInfo } from '../engine'
import { decodeValue, type InterruptionReason, InvalidOptionError, pause, type StorageError } from '../base'
import type { LeaseKeeper } from './lease'
import { type AnnouncedOutcome, encodeOutput, outcomeOf, type OutcomeParams, type Settled } from './outcome'
import { refuseSpent } from '../job'

/** One run in the hands of this worker, from its claim to the commit that ends the hold. */
export interface Execution {
  readonly runId: string
  readonly jobName: string
  readonly leaseEpoch: number
  /** Until it has got further than the executions that were lost with their workers. */
  isSuspect(): boolean
  interrupt(reason: InterruptionReason, graceMs?: number): void
  /** Settles when nothing more will be done or written for it. Never rejects. */
  readonly done: Promise<Done>
}

/** How an execution left its run. */
export interface Done {
  /** The run waits, maybe for a time. */
  readonly isDueLater: boolean
  /** The end of a child makes it due in so many milliseconds. */
  readonly restMs: number
}

export const OVER: Done = { isDueLater: false, restMs: 0 }

export interface ExecutionParams {
  readonly engine: Engine
  readonly line: CommitLine
  readonly leases: LeaseKeeper
  readonly run: RunRecord
  /** When the claim was sent, by the worker's own clock. */
  readonly claimedAt: number
  /** The run is no suspect any more. */
  readonly onCleared: () => void
}

export function startExecution(params: ExecutionParams): Execution {
  const { engine, line, leases, run, claimedAt } = params
  const { clock } = engine.environment
  const interruption = createInterruption(clock, run.id)
  let suspect = isSuspect(run)
  const hold: Hold = { lost: false, finishing: false, runEnded: false }
  let settle: (settled: Settled) => void = () => {}
  let giveUp: (error: unknown) => void = () => {}
  const settled = new Promise<Settled>((resolve, reject) => {
    settle = resolve
    giveUp = reject
  })
  const onLate = createLateReport(params, hold)
  const calls = new OpenCalls(clock, interruption, { onChange: () => suspension.check(), onLate })
  const suspend = (suspended: Suspended) => settle({ kind: 'suspended', ...suspended })
  const suspension = new Suspension({ clock, calls, wakes: run.wakes, suspend })
  interruption.onInterrupt(() => suspension.interrupt())

  function noteAnswer(answer: CommitAnswer | RenewAnswer): void {
    if (!answer.kept) {
      noteLost()
      return
    }
    if (answer.cancelRequested) interruption.interrupt('cancelled')
    suspension.noteWakes(answer.wakes)
  }

  function noteLost(): void {
    if (hold.lost) return
    hold.lost = true
    tellLost(engine, run)
    interruption.interrupt('lease-lost')
  }

  /** Once the last commit is on its way, only its own answer tells: it may be what a renewal finds nothing after. */
  function noteRenewal(answer: RenewAnswer): void {
    if (answer.kept || !hold.finishing) noteAnswer(answer)
  }

  const lease = leaseOf(run)
  const leaseMs = () => leaseMsOf(engine, run.jobName)
  const held = leases.hold({
    lease,
    claimedAt,
    leaseMs,
    onAnswer: noteRenewal,
    onOutOfTouch: () => interruption.interrupt('lease-lost'),
  })
  const writer = new RunWriter({
    engine,
    line,
    lease,
    leaseMs,
    onAnswer(answer, sentAt) {
      held.extendedAt(sentAt)
      noteAnswer(answer)
    },
    onProgress() {
      if (!suspect) return
      suspect = false
      params.onCleared()
    },
    // The lease runs out and the run is recovered, as after a crash.
    onGivenUp() {
      hold.lost = true
      interruption.interrupt('lease-lost')
      held.drop()
    },
  })
  const own = { interruption, suspension, calls, writer, hold, settled, settle, giveUp }
  const done = untilDone({ engine, line, leases, run, claimedAt, onCleared: params.onCleared, ...own }, held)
  const { id: runId, jobName, leaseEpoch } = run
  return { runId, jobName, leaseEpoch, isSuspect: () => suspect, interrupt: interruption.interrupt, done }
}

interface Hold {
  lost: boolean
  finishing: boolean
  /** Well or badly, by what its function came to. */
  runEnded: boolean
}

interface RunningExecution extends ExecutionParams {
  readonly interruption: Interruption
  readonly suspension: Suspension
  readonly calls: OpenCalls
  readonly writer: RunWriter
  readonly hold: Hold
  /** The first call of `settle` counts: what the job function came to, or why it was left where it is. */
  readonly settle: (settled: Settled) => void
  readonly settled: Promise<Settled>
  /** There is none: what the storage keeps of the run cannot be read. */
  readonly giveUp: (error: unknown) => void
}

/** A call that comes when the run has ended starts nothing and never settles. Somebody should know, once. */
function createLateReport({ engine, run }: ExecutionParams, hold: Hold): (name: string) => void {
  let isReported = false
  return (name) => {
    // A function that was left where it was, or told to end, is called again or knows.
    if (isReported || !hold.runEnded) return
    isReported = true
    const error = new InvalidOptionError(
      `Step "${name}" was called when run ${run.id} of job "${run.jobName}" had ended: it is not run, and its promise ` +
        'never settles. Await every call of ctx before the job function returns.',
    )
    engine.reportError(error, `run ${run.id}`)
  }
}

async function untilDone(execution: RunningExecution, held: { drop(): void }): Execution['done'] {
  const { engine, run, interruption } = execution
  const done = await runToEnd(execution).catch((error: unknown) => {
    reportTrouble(engine, error, `run ${run.id}`)
    return OVER
  })
  interruption.dispose()
  held.drop()
  return done
}

async function runToEnd(execution: RunningExecution): Promise<Done> {
  const { engine, run, interruption } = execution
  const { clock } = engine.environment
  const startedAt = clock.monotonic()
  const payload = isWatched(engine, 'run:start') ? decodeValue(run.payload) : undefined
  const start = { type: 'run:start', runId: run.id, jobName: run.jobName, payload } as const
  engine.events.emit(start, engine.plugins.recordsEvent('run:start') ? run.lastEventSequence : undefined)
  const callOffDeadline = watchDeadline(execution)
  // A first execution has none, and does not ask. Who stops its worker at this moment comes before the job function.
  const hasNone = run.leaseEpoch === 1 && (run.forkedFrom ?? null) === null
  const steps = await (hasNone ? [] : loadSteps(execution))
  const scope = createScope(execution, startedAt, steps)
  const settled: Settled = interruption.reason() === null ? await runJob(execution, scope) : { kind: 'abandoned' }
  callOffDeadline()
  execution.suspension.end()
  execution.calls.close()
  if (execution.hold.lost) return OVER
  const reason = interruption.reason()
  if (reason === 'lease-lost' && countsCrashes(engine, run)) {
    // Given back it would not count, and a storage that is away again and again would have it begun for ever.
    tellLost(engine, run)
    return OVER
  }
  interruption.end()
  const heldMs = clock.monotonic() - startedAt
  const durationMs = Math.round(msBefore(run) + heldMs)
  return finish(execution, { engine, run, settled, reason, stepOfError: scope.stepOfError, durationMs, heldMs })
}

/** What the storage refuses for what the job has made of it is an error of the job, which can be stored. */
async function finish(execution: RunningExecution, params: OutcomeParams): Promise<Done> {
  const first = outcomeOf(params)
  const refusal = await store(execution, first)
  if (refusal === undefined) return doneWith(first.outcome)
  if (!OF_THE_JOB.has(first.outcome.kind)) {
    execution.writer.giveUp()
    return OVER
  }
  const failing = outcomeOf({ ...params, settled: { kind: 'threw', error: refusal } })
  if ((await store(execution, failing)) !== undefined) execution.writer.giveUp()
  return doneWith(failing.outcome)
}

/** Outcomes with values that the job made: only of those a refusal says something about the job. */
export const OF_THE_JOB: ReadonlySet<Outcome['kind']> = new Set(['complete', 'fail', 'retryLater'])

/** Resolves with the refusal of a storage that will never take what the job came to. */
async function store(
  { hold, writer }: RunningExecution,
  announced: AnnouncedOutcome,
): Promise<StorageError | undefined> {
  const { outcome } = announced
  hold.finishing = true
  hold.runEnded = outcome.kind === 'complete' || outcome.kind === 'fail'
  const answer = await writer.finish(outcome)
  if (answer.kept) announced.announce(answer)
  return answer.refusal
}

function doneWith(outcome: Outcome): Done {
  const isSuspended = outcome.kind === 'suspend'
  return { isDueLater: isSuspended || outcome.kind === 'retryLater', restMs: isSuspended ? outcome.restMs : 0 }
}

/** From the first start of the run to the claim of this execution, by the clock of the storage. */
export function msBefore({ startedAt, heartbeatAt }: RunRecord): number {
  return startedAt === null || heartbeatAt === null ? 0 : Math.max(0, Date.parse(heartbeatAt) - Date.parse(startedAt))
}

/** Only of the first execution it is known when the run was due. */
function queuedMs({ leaseEpoch, availableAt, startedAt }: RunRecord): number | null {
  if (leaseEpoch !== 1 || availableAt === null || startedAt === null) return null
  return Math.max(0, Date.parse(startedAt) - Date.parse(availableAt))
}

function countsCrashes({ jobs }: Engine, { jobName }: RunRecord): boolean {
  return jobs.get(jobName)?.retry?.countCrashes === true
}

/** The storage says at the claim how far away the deadline is; from there on the worker's own timer is good enough. */
function watchDeadline({ engine, run, claimedAt, interruption }: RunningExecution): () => void {
  if (run.deadlineAt === null || run.heartbeatAt === null) return () => {}
  const { clock } = engine.environment
  const leftMs = Date.parse(run.deadlineAt) - Date.parse(run.heartbeatAt) - (clock.monotonic() - claimedAt)
  if (leftMs > 0) return clock.schedule(leftMs, () => interruption.interrupt('timeout'))
  interruption.interrupt('timeout')
  return () => {}
}

async function loadSteps({ engine, run, interruption }: RunningExecution): Promise<readonly StepRecord[]> {
  try {
    const call = (storage: Storage) => storage.getSteps(run.id)
    return await askPatiently({ engine, interruption, during: 'read steps', call })
  } catch {
    // Interrupted meanwhile: the job will not run.
    return []
  }
}

function createScope(execution: RunningExecution, begunAt: number, steps: readonly StepRecord[]): StepScope {
  const { engine, run, writer, interruption, suspension, calls, settle } = execution
  const recorded = new Map<string, RecordedStep>()
  const failed = new Map<string, RecordedStep>()
  const failures = new Map<string, number>()
  const failuresOfAttempt = new Map<string, number>()
  for (const step of steps) {
    if (step.status !== 'failed') recorded.set(step.name, step)
    else if (step.attempt !== NO_ATTEMPT) {
      const counts = step.attempt === run.attempt ? [failures, failuresOfAttempt] : [failures]
      for (const count of counts) count.set(step.name, (count.get(step.name) ?? 0) + 1)
      if (step.attempt >= (failed.get(step.name)?.attempt ?? 0)) failed.set(step.name, step)
    }
  }
  return {
    engine,
    run,
    begunAt,
    writer,
    interruption,
    suspension,
    calls,
    recorded,
    failed,
    failures,
    failuresOfAttempt,
    looks: new LookTogether(engine, interruption, run.id),
    completedSteps: run.currentStepIndex,
    stepOfError: new Map(),
    park: (reason) => settle({ kind: 'parked', reason }),
    logFor: createLogs(execution),
    progress: createProgress(execution),
  }
}

/** Runs the job function to its end, or until the grace after an interruption is over. */
async function runJob(execution: RunningExecution, scope: StepScope): Promise<Settled> {
  const { engine, interruption, calls, settle, giveUp } = execution
  interruption.onInterrupt(() => void abandon(execution))
  void engine.bodyScope.run({ scope, stepName: null }, () => settleJob(execution, scope)).then(settle, giveUp)
  const settled = await execution.settled
  if (settled.kind === 'threw' || settled.kind === 'parked') interruption.interrupt('ended')
  if (interruption.reason() !== null) await Promise.race([calls.stepsDone(), interruption.expired])
  return settled
}

/** The job function with everything that belongs to it: steps that nobody awaited, and the check of its output. */
async function settleJob({ engine, run, interruption }: RunningExecution, scope: StepScope): Promise<Settled> {
  const payload = decodeValue(run.payload)
  const info: RunInfo = {
    runId: run.id,
    jobName: run.jobName,
    payload,
    attempt: run.attempt,
    tenant: run.tenant,
    traceParent: run.traceParent ?? null,
    startedAt: run.startedAt,
    queuedMs: queuedMs(run),
    get signal() {
      return interruption.signal
    },
  }
  const job = engine.jobs.get(run.jobName)
  try {
    refuseSpent(job?.retry ?? null, run, engine.options.maxCrashes)
    const value = await engine.plugins.aroundRun(info, async () => {
      const pass: Pass = { names: new Map(), isRunning: true }
      try {
        return await job?.execute(createContext(scope, pass), payload)
      } finally {
        pass.isRunning = false
      }
    })
    if (scope.calls.size > 0) await unawaitedSettled(scope)
    return await encodeOutput(engine, run.jobName, value)
  } catch (error) {
    return interruption.isCause(error) ? { kind: 'abandoned' } : { kind: 'threw', error }
  }
}

/** After a shutdown the job function waits for ever on its next ctx call: it is enough that no body is running. */
async function abandon({ engine, interruption, calls, settle }: RunningExecution): Promise<void> {
  if (interruption.reason() === 'shutdown') {
    await Promise.race([calls.stepsDone(), interruption.expired])
    await pause(engine.environment.clock, 0)
  } else await interruption.expired
  settle({ kind: 'abandoned' })
}

/** Steps that nobody awaited belong to the run all the same. A wait that nobody needs any more does not. */
async function unawaitedSettled(scope: StepScope): Promise<void> {
  const { engine, run, calls } = scope
  for (let open = calls.steps(); open.length > 0; open = calls.steps()) {
    for (const { name, index } of open) {
      const event = {
        type: 'step:unawaited',
        runId: run.id,
        jobName: run.jobName,
        stepName: name,
        stepIndex: index,
      } as const
      scope.writer.ride(event)
      engine.events.emit(event)
    }
    await Promise.all(open.map((call) => call.result()))
  }
}

export function tellLost({ events, options }: Engine, { id: runId, jobName }: RunRecord): void {
  events.emit({ type: 'worker:lease-lost', runId, jobName, workerId: options.workerId })
}

export function leaseOf(run: RunRecord): Lease {
  return { runId: run.id, epoch: run.leaseEpoch, token: run.claimToken ?? '', leaderEpoch: run.leaderEpoch }
}
