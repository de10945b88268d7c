import { type Engine, limitsOf, type WorkerState } from '../engine'
import { isSuspect, type RunRecord } from '../port'
import type { ContinuationState } from '../job'

/** The worker of this instance. */
export interface WorkerNow {
  readonly state: WorkerState
  /** What a due run of the job waits for, where somebody else decides when the worker runs. */
  explainDue(jobName: string): string | null
}

/** Says in words what a run is doing, or what it is waiting for. */
export async function explainRun(engine: Engine, worker: WorkerNow, run: RunRecord): Promise<string> {
  const subject = `Run ${run.id} of job "${run.jobName}"`
  switch (run.status) {
    case 'pending':
      return `${subject} ${await explainPending(engine, worker, run)}`
    case 'running':
      return `${subject} ${explainRunning(engine, run)}`
    case 'completed':
      return `${subject} completed at ${run.finishedAt} after ${run.currentStepIndex} steps, in attempt ${run.attempt}.`
    case 'failed':
    case 'timed_out':
      return `${subject} ${run.status === 'failed' ? 'failed' : 'timed out'} at ${run.finishedAt}${inStep(run)}: ${run.error} durably.retry("${run.id}") goes on after its last completed step.`
    case 'cancelled':
      return `${subject} was cancelled at ${run.finishedAt}. durably.retry("${run.id}") goes on after its last completed step.`
    case 'assigned':
      return `${subject} was assigned to worker ${run.assignedWorkerId} at ${run.assignedAt}, which has not started it yet.`
    case 'orphaned':
      return `${subject} was assigned to a worker that did not start it, and waits to be assigned again.`
  }
}

/** A run whose worker has missed so many renewals is one to be confirmed. */
const LATE_BEATS = 3

/** Told, not stored: only who is in touch with the database could write it, and that one knows better. */
export function continuationStateOf(engine: Engine, run: RunRecord): ContinuationState {
  const { heartbeatAt, leaseUntil } = run
  if (run.status !== 'running' || !mayContinue(engine, run)) return 'NONE'
  const { environment, options } = engine
  const now = environment.clock.now()
  const isLate = now - Date.parse(heartbeatAt ?? '') > LATE_BEATS * options.heartbeatIntervalMs
  return isLate && !isPast(leaseUntil, now) ? 'CONFIRMING' : 'NONE'
}

/** Its job says so; of one that is not known here its lease does, which is longer than that of others. */
function mayContinue({ jobs, options }: Engine, { jobName, heartbeatAt, leaseUntil }: RunRecord): boolean {
  const job = jobs.get(jobName)
  if (job !== undefined) return job.leaseMs > 0
  return Date.parse(leaseUntil ?? '') - Date.parse(heartbeatAt ?? '') > options.leaseMs
}

function inStep(run: RunRecord): string {
  return run.errorDetail?.stepName === undefined ? '' : ` in step "${run.errorDetail.stepName}"`
}

function explainRunning(engine: Engine, run: RunRecord): string {
  const now = engine.environment.clock.now()
  const cancelling = run.cancelRequestedAt === null ? '' : ` It was asked to cancel at ${run.cancelRequestedAt}.`
  const lease = isPast(run.leaseUntil, now)
    ? `its lease ran out at ${run.leaseUntil}, and the next worker that looks takes it back.`
    : continuationStateOf(engine, run) === 'CONFIRMING'
      ? `its renewals are late, so nobody knows whether it goes on (CONFIRMING); without news it is taken back after ${run.leaseUntil}.`
      : `without news it is taken back after ${run.leaseUntil}.`
  return `is running on worker ${run.ownerId}, which was last heard of at ${run.heartbeatAt}; ${lease}${cancelling}`
}

async function explainPending(engine: Engine, worker: WorkerNow, run: RunRecord): Promise<string> {
  const { waitingFor, availableAt } = run
  if (waitingFor?.kind === 'unpark') {
    return `is parked: ${waitingFor.reason} durably.unpark("${run.id}") lets it go on, durably.failParked("${run.id}") ends it.${timeoutOfParked(run)}`
  }
  if (!isPast(availableAt, engine.environment.clock.now()))
    return `${explainWaiting(run, engine.environment.clock.now())}${await parkedChildren(engine, run)}`
  const reason = await explainDue(engine, worker, run)
  if (waitingFor?.kind === 'steps') return `need not wait for ${namesOf(waitingFor.steps)} any more, and ${reason}`
  return waitingFor?.kind === 'retry'
    ? `failed (${run.error}), may start attempt ${run.attempt}, and ${reason}`
    : reason
}

function timeoutOfParked({ deadlineAt }: RunRecord): string {
  return deadlineAt === null ? '' : ` Its timeout goes on meanwhile: if it goes on after ${deadlineAt}, it times out.`
}

/** Enough to know that there are some. */
const CHILDREN_LOOKED_AT = 500

async function parkedChildren({ storage }: Engine, { id, tenant, waitingFor }: RunRecord): Promise<string> {
  if (waitingFor?.kind !== 'steps') return ''
  const query = { tenant, parentRunId: id, statuses: ['pending'], limit: CHILDREN_LOOKED_AT } as const
  const child = (await storage.getRuns(query)).find((run) => run.waitingFor?.kind === 'unpark')
  return child === undefined ? '' : ` Its child ${child.id} is parked: durably.explain("${child.id}") says why.`
}

/** Something is still to come: its time, or what has none. */
function explainWaiting(run: RunRecord, now: number): string {
  const { waitingFor, availableAt, deadlineAt, attempt, error } = run
  const endsAt = availableAt !== null && availableAt === deadlineAt ? `it times out at ${deadlineAt}` : null
  if (waitingFor?.kind === 'steps') {
    const until = endsAt ?? (availableAt === null ? null : `it goes on at ${availableAt} at the latest`)
    return `waits for ${namesOf(waitingFor.steps)}${until === null ? '' : `; ${until}`}.`
  }
  if (waitingFor?.kind === 'retry')
    return `failed (${error}), and ${endsAt ?? `starts attempt ${attempt} at ${availableAt}`}.`
  return run.crashCount > 0 ? explainCrashes(run, now) : `starts at ${availableAt}.`
}

function explainCrashes({ crashCount, availableAt }: RunRecord, now: number): string {
  const leftMs = Date.parse(availableAt ?? '') - now
  const times = crashCount === 1 ? 'once' : `${crashCount} times in a row`
  return `lost its worker ${times} without getting further, and goes on at ${availableAt}, in ${Math.ceil(leftMs / 1000)} s.`
}

async function explainDue(engine: Engine, worker: WorkerNow, run: RunRecord): Promise<string> {
  const { state } = worker
  if ((await engine.storage.limits?.paused())?.includes(run.jobName) === true) {
    return `is due; its job is paused everywhere, until durably.resumeJob("${run.jobName}", { scope: 'database' }).`
  }
  const holders = await keyHolders(engine, run)
  if (holders.length >= run.concurrencyLimit) {
    return `waits for its concurrency key "${run.concurrencyKey}", which ${holders.join(', ')} ${holders.length === 1 ? 'has' : 'have'}.`
  }
  const told = worker.explainDue(run.jobName)
  if (told !== null) return `is due; ${told}`
  if (!engine.jobs.has(run.jobName)) {
    const here = engine.declared.has(run.jobName) ? 'it is only declared here' : 'this process does not'
    return `waits for a worker that knows the job: ${here}.`
  }
  if (state === 'stopped') {
    return 'is due; no worker runs in this process. durably.start() starts it, unless one of another process is to run this.'
  }
  if (state === 'stopping') return 'is due; the worker of this process is stopping and takes no more.'
  if (engine.admission.isPaused(run.jobName)) return 'is due; this process has paused its job.'
  if (engine.admission.isForLeader(run.jobName)) return 'is due and waits for the leader of the cluster to assign it.'
  const limit = await limitReached(engine, run)
  if (limit !== null) return `is due and waits for its job to have room in all processes together: ${limit}.`
  if (!engine.admission.hasRoom(run.jobName)) {
    return 'is due and waits for its job to have room again: concurrency or rateLimit of the job is used up here.'
  }
  if (isSuspect(run)) {
    return `is due. It lost its worker ${run.crashCount} times in a row, and waits for one that holds no other such run.`
  }
  return 'is due and waits for a free worker.'
}

async function limitReached({ jobs, storage }: Engine, { jobName }: RunRecord): Promise<string | null> {
  const job = jobs.get(jobName)
  if (job?.scope !== 'database') return null
  const load = await storage.limits?.load(limitsOf(job))
  if (load === undefined) return null
  if (job.concurrency !== null && load.running >= job.concurrency) {
    return `${load.running} of its runs are running, and its concurrency is ${job.concurrency}`
  }
  return load.opensInMs > 0 ? `its rateLimit lets the next run begin in ${Math.ceil(load.opensInMs)} ms` : null
}

/** By the clock of this process: near enough for words. */
function isPast(instant: string | null, now: number): boolean {
  return instant !== null && Date.parse(instant) <= now
}

function namesOf(steps: readonly string[]): string {
  return steps.map((step) => `"${step}"`).join(', ')
}

/** Nobody waits for a slot that is kept from the execution before. */
async function keyHolders({ storage }: Engine, run: RunRecord): Promise<string[]> {
  const { concurrencyKey, concurrencySlot, tenant } = run
  if (concurrencyKey === null || concurrencySlot !== null) return []
  return (await storage.getRuns({ tenant, holdingKey: concurrencyKey })).map(({ id }) => id)
}
