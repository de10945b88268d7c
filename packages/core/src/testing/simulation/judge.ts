import type { Outcome } from '../../port'
import { boundOf, isRightDelay } from './judge-retries'
import { historyOf, type ModelRun } from './model-run'
import { type FateOf, isOutputOf, outcomeOf, REFUSED_OUTPUT } from './script-outcome'
import type { BodyStart } from './scripted-bodies'
import { branchesOf, callsOf, callsOfBranch, failureOf, JOB_POLICIES, RETRY_AFTER_MS, type Script } from './scripts'
import { must } from './violation'

type OutcomeOf<K extends Outcome['kind']> = Extract<Outcome, { kind: K }>

/** The holder begins a body: it must not be recorded, be due, and must go on where the last one stopped. */
export function judgeStart(run: ModelRun, { step, tools, kind, runAttempt }: BodyStart, what: string): void {
  const live = run.liveSteps.get(step.name)
  const { failures, checkpoint, lastFailed } = historyOf(run, step.name)
  must(live?.status !== 'completed', () => `${what}, and its result was recorded`)
  must(
    live !== undefined || lastFailed?.attempt !== run.attempt,
    () => `${what}, and its failure in this attempt was recorded`,
  )
  must(
    run.deadlineAt === null || run.claimedAt < run.deadlineAt,
    () => `${what}, and the run was claimed after its deadline`,
  )
  must(runAttempt === run.attempt, () => `${what} in attempt ${runAttempt}, which should be ${run.attempt}`)
  must(tools.attempt === failures + 1, () => `${what} as attempt ${tools.attempt} after ${failures} failures`)
  if (kind !== 'run') return
  const given = tools.checkpoint === undefined ? null : JSON.stringify(tools.checkpoint)
  must(given === checkpoint, () => `${what} with checkpoint ${given}, the last one saved is ${checkpoint}`)
}

/** Before the outcome is taken in. */
export function judgeOutcome(run: ModelRun, outcome: Outcome): void {
  if (run.isSpent) {
    judgeEndOfSpent(run, outcome)
    return
  }
  if (outcome.kind === 'complete') judgeOutput(run, outcome.output)
  if (outcome.kind === 'fail') judgeFailure(run, outcome)
  if (outcome.kind === 'retryLater') judgeRetry(run, outcome)
  if (outcome.kind === 'suspend') judgeSuspension(run, outcome)
  if (outcome.kind === 'timeOut') must(run.wanted.timeoutMs !== null, () => `run ${run.wanted.id} has no time-out`)
}

/** Whoever claims it fails it before any body, unless they have to let go of it. */
function judgeEndOfSpent(run: ModelRun, outcome: Outcome): void {
  if (outcome.kind !== 'fail') {
    must(
      ['release', 'cancelled', 'timeOut', 'park'].includes(outcome.kind),
      () => `run ${run.wanted.id} was spent, and left by ${outcome.kind}`,
    )
    return
  }
  const isRight = outcome.detail.code === 'crash_limit' && outcome.error.includes(` ${run.crashes} times in a row `)
  must(isRight, () => `run ${run.wanted.id} was spent after ${run.crashes} crashes, and failed with "${outcome.error}"`)
}

function judgeOutput(run: ModelRun, output: string | null): void {
  const script = scriptOf(run)
  const awaited = script.actions.filter((action) => action.kind !== 'unawaited').flatMap(branchesOf)
  for (const { name } of awaited.flatMap(callsOfBranch)) {
    const isDone = run.liveSteps.get(name)?.status === 'completed' || historyOf(run, name).failures > 0
    must(isDone, () => `run ${run.wanted.id} completed before its step ${name}`)
  }
  const fateOf = fatesOf(run)
  const right = output !== null && isOutputOf({ script, attempt: run.attempt, fateOf }, JSON.parse(output))
  must(right, () => {
    const expected = JSON.stringify(outcomeOf(script, run.attempt, fateOf))
    return `run ${run.wanted.id} completed with ${output}; its script comes to ${expected}`
  })
}

/** Nothing but the script, its waits or the schema of its output makes a run fail, and only after all its tries. */
function judgeFailure(run: ModelRun, { error }: OutcomeOf<'fail'>): void {
  if (isRefusal(run, error)) return
  judgeError(run, error)
  const tries = run.attempt - run.attemptBase
  const policy = JOB_POLICIES[run.wanted.jobName]
  must(
    policy === undefined || tries >= policy.maxAttempts || isPermanent(run, error),
    () => `run ${run.wanted.id} failed for good after ${tries} tries of ${policy?.maxAttempts}`,
  )
}

function judgeRetry(run: ModelRun, { error, delayMs }: OutcomeOf<'retryLater'>): void {
  judgeError(run, error)
  const tries = run.attempt - run.attemptBase
  const policy = JOB_POLICIES[run.wanted.jobName]
  const what = `run ${run.wanted.id} will be tried again after ${tries} tries`
  must(policy !== undefined && tries < policy.maxAttempts, () => `${what} of ${policy?.maxAttempts ?? 1}`)
  must(!isPermanent(run, error), () => `${what}, and "${error}" is permanent`)
  // An error that says when to come back says it only as long as it is that very object.
  const isAsked = callsOf(scriptOf(run)).some(
    (call) => 'step' in call && call.step.failure === 'after' && failureOf(call.step) === error,
  )
  const isRight =
    (isAsked && delayMs === RETRY_AFTER_MS) || (policy !== undefined && isRightDelay(policy, tries, delayMs))
  must(isRight, () => `${what}, in ${delayMs} ms; its policy says ${policy && boundOf(policy, tries)}`)
}

function judgeError(run: ModelRun, error: string): void {
  const { errors } = outcomeOf(scriptOf(run), run.attempt, fatesOf(run))
  must(errors.includes(error), () => `run ${run.wanted.id} failed with "${error}", which is not its script's`)
}

function isRefusal(run: ModelRun, error: string): boolean {
  const isRefused = run.wanted.jobName === 'strict' && error.includes(REFUSED_OUTPUT)
  return isRefused && outcomeOf(scriptOf(run), run.attempt, fatesOf(run)).output !== null
}

function isPermanent(run: ModelRun, error: string): boolean {
  const ofStep = callsOf(scriptOf(run)).some(
    (call) => 'step' in call && call.step.failure === 'permanent' && failureOf(call.step) === error,
  )
  const ofWait = run.failedSteps.some(
    (step) => step.kind === 'child' && step.error === error && step.errorDetail?.code === 'INVALID_OPTION',
  )
  return ofStep || ofWait
}

function judgeSuspension(run: ModelRun, { steps, wakesSeen }: OutcomeOf<'suspend'>): void {
  const { id } = run.wanted
  must(steps.length > 0, () => `run ${id} was suspended for nothing`)
  for (const name of steps) {
    const status = run.liveSteps.get(name)?.status
    must(status === 'waiting', () => `run ${id} was suspended for step ${name}, which is ${status}`)
  }
  must(wakesSeen <= run.wakes, () => `run ${id} has seen ${wakesSeen} wakes of ${run.wakes}`)
}

/** What the waits of the run came to in this attempt, by the rows that were accepted. */
export function fatesOf(run: ModelRun): FateOf {
  return (stepName) => {
    const live = run.liveSteps.get(stepName)
    if (live?.status === 'completed') return { result: live.output === null ? null : JSON.parse(live.output) }
    const { lastFailed } = historyOf(run, stepName)
    return lastFailed?.attempt === run.attempt ? { error: lastFailed.error ?? '' } : null
  }
}

export function scriptOf(run: ModelRun): Script {
  return JSON.parse(run.wanted.payload ?? 'null') as Script
}
