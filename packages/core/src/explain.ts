import type { Engine } from './engine'
import type { RunRecord } from './storage'

/** Says in words what a run is doing, or what it is waiting for. */
export async function explainRun(engine: Engine, run: RunRecord): Promise<string> {
  const subject = `Run ${run.id} of job "${run.jobName}"`
  switch (run.status) {
    case 'pending':
      return `${subject} ${await explainPending(engine, run)}`
    case 'running':
      return `${subject} ${explainRunning(run)}`
    case 'completed':
      return `${subject} completed at ${run.finishedAt} after ${run.currentStepIndex} steps, in attempt ${run.attempt}.`
    case 'failed':
    case 'timed_out':
      return `${subject} ${run.status === 'failed' ? 'failed' : 'timed out'} at ${run.finishedAt}${inStep(run)}: ${run.error} durably.retry("${run.id}") goes on after its last completed step.`
    case 'cancelled':
      return `${subject} was cancelled at ${run.finishedAt}. durably.retry("${run.id}") goes on after its last completed step.`
    case 'assigned':
      return `${subject} is assigned to a worker that has not started it yet.`
    case 'orphaned':
      return `${subject} was assigned to a worker that did not start it, and waits to be assigned again.`
  }
}

function inStep(run: RunRecord): string {
  return run.errorDetail?.stepName === undefined ? '' : ` in step "${run.errorDetail.stepName}"`
}

function explainRunning(run: RunRecord): string {
  const cancelling = run.cancelRequestedAt === null ? '' : ` It was asked to cancel at ${run.cancelRequestedAt}.`
  return (
    `is running on worker ${run.ownerId}, which was last heard of at ${run.heartbeatAt}; ` +
    `without news it is taken back after ${run.leaseUntil}.${cancelling}`
  )
}

async function explainPending(engine: Engine, run: RunRecord): Promise<string> {
  const { waitingFor, availableAt, attempt } = run
  if (waitingFor?.kind === 'unpark') {
    return `is parked: ${waitingFor.reason} durably.unpark("${run.id}") lets it go on, durably.failParked("${run.id}") ends it.`
  }
  if (waitingFor?.kind === 'steps') {
    const until = availableAt === null ? '' : `, until ${availableAt} at the latest`
    return `waits for ${waitingFor.steps.map((step) => `"${step}"`).join(', ')}${until}.`
  }
  if (waitingFor?.kind === 'retry') return `failed (${run.error}) and starts attempt ${attempt} at ${availableAt}.`
  if (availableAt !== null && Date.parse(availableAt) > engine.environment.clock.now())
    return `starts at ${availableAt}.`
  const holders = await keyHolders(engine, run)
  if (holders.length >= run.concurrencyLimit) {
    return `waits for its concurrency key "${run.concurrencyKey}", which ${holders.join(', ')} ${holders.length === 1 ? 'has' : 'have'}.`
  }
  if (!engine.jobs.has(run.jobName)) {
    const here = engine.declared.has(run.jobName) ? 'it is only declared here' : 'this process does not know it'
    return `waits for a worker that has the job: ${here}.`
  }
  if (engine.admission.isPaused(run.jobName)) return 'is due; this process has paused its job.'
  if (!engine.admission.hasRoom(run.jobName)) {
    return 'is due and waits for its job to have room again: concurrency or rateLimit of the job is used up here.'
  }
  return 'is due and waits for a free worker.'
}

async function keyHolders({ storage }: Engine, { concurrencyKey, tenant }: RunRecord): Promise<string[]> {
  if (concurrencyKey === null) return []
  return (await storage.getRuns({ tenant, holdingKey: concurrencyKey })).map((run) => run.id)
}
