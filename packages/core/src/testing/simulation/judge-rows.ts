import type { RunCommit, StepWrite } from '../../port'
import { scriptOf } from './judge'
import { boundOf, isRightDelay } from './judge-retries'
import type { Model } from './model'
import { historyOf, type ModelRun } from './model-run'
import {
  bodyFails,
  callsOf,
  failureOf,
  RETRY_AFTER_MS,
  type ScriptCall,
  type ScriptChild,
  type ScriptSleep,
  type ScriptStep,
  type ScriptWaitFor,
} from './scripts'
import { must, mustEqual } from './violation'

interface Writing {
  readonly model: Model
  readonly run: ModelRun
  readonly commit: RunCommit
}

/** Before the rows of an accepted commit are taken in: each must be what the script and the storage lead to. */
export function judgeRows(model: Model, run: ModelRun, commit: RunCommit): void {
  const calls = new Map(callsOf(scriptOf(run)).map((call) => [call.name, call]))
  const used = new Set<number>()
  for (const row of commit.steps) {
    const call = calls.get(row.name)
    const what = `step ${row.name} of ${run.wanted.id}`
    mustEqual(row.kind, call?.kind, `kind of ${what}`)
    if (call !== undefined) judgeRow({ model, run, commit }, { row, call, what, used })
  }
  mustEqual([...used].sort(), [...commit.consumedSignals].sort(), `signals that the rows of ${run.wanted.id} used up`)
  judgeOrder(run, commit.consumedSignals)
  const isFurther = commit.steps.some((row) => getsFurther(run, row))
  mustEqual(commit.hasProgressed, isFurther, `whether ${run.wanted.id} is said to have got further`)
}

/** An outcome, a wait, or another checkpoint than before; not the start alone of a body. */
function getsFurther(run: ModelRun, { name, kind, status, attempt, checkpoint }: StepWrite): boolean {
  if (status !== 'started') return attempt > 0
  return kind !== 'stream' && checkpoint !== historyOf(run, name).checkpoint
}

interface Judged {
  readonly row: StepWrite
  readonly call: ScriptCall
  readonly what: string
  /** Positions of signals that a row of this commit accounts for. */
  readonly used: Set<number>
}

function judgeRow(writing: Writing, judged: Judged): void {
  const { call, row } = judged
  // Called off before its body ran.
  if (row.status === 'failed' && row.attempt === 0) return
  mustEqual(row.attempt, writing.run.attempt, `attempt of ${judged.what}`)
  if ('step' in call) judgeStep(writing, judged, call.step)
  if (call.kind === 'sleep') judgeSleep(writing, judged, call.branch)
  if (call.kind === 'signal') judgeWaitFor(writing, judged, call.branch)
  if (call.kind === 'trigger') judgeTrigger(writing, judged, call.branch)
  if (call.kind === 'child') judgeChild(writing, judged, call.branch)
}

function judgeStep({ run, commit }: Writing, { row, what }: Judged, step: ScriptStep): void {
  const { failures } = historyOf(run, row.name)
  const isFailing = bodyFails(step, run.attempt, failures)
  const waiting = commit.steps.find(({ name, status }) => name === row.name && status === 'waiting')
  if (row.status === 'completed') {
    must(!isFailing, () => `${what} completed at its try ${failures + 1}`)
    mustEqual(row.output, JSON.stringify(step.value), `output of ${what}`)
  }
  if (row.status === 'waiting') {
    const isAfterFailure = commit.steps.some(({ name, status }) => name === row.name && status === 'failed')
    must(isAfterFailure, () => `${what} waits, and it did not fail`)
  }
  const isLost = step.once === true && row.errorDetail?.code === 'INTERRUPTED'
  if (row.status !== 'failed' || isLost) return
  must(isFailing, () => `${what} failed at its try ${failures + 1} with "${row.error}"`)
  mustEqual(row.error, failureOf(step), `error of ${what}`)
  judgeNextTry(run, { row, what, waiting }, step)
}

interface FailedTry extends Pick<Judged, 'row' | 'what'> {
  readonly waiting: StepWrite | undefined
}

/** The failure comes with a row in which the step goes on, as long as its policy says so. */
function judgeNextTry(run: ModelRun, { row, what, waiting }: FailedTry, { retry, failure }: ScriptStep): void {
  const before = run.failedSteps.filter(({ name, attempt }) => name === row.name && attempt === run.attempt)
  const tries = before.length + 1
  const goesOn = retry !== undefined && tries < retry.maxAttempts && failure !== 'permanent'
  mustEqual(waiting !== undefined, goesOn, `whether ${what} is tried again after try ${tries}`)
  if (waiting === undefined || retry === undefined) return
  const { due } = waiting
  const delayMs = due !== null && 'inMs' in due ? due.inMs : Number.NaN
  const isRight = failure === 'after' ? delayMs === RETRY_AFTER_MS : isRightDelay(retry, tries, delayMs)
  must(isRight, () => `${what} is tried again in ${delayMs} ms; its policy says ${boundOf(retry, tries)}`)
}

function judgeSleep(writing: Writing, { row, what }: Judged, { ms }: ScriptSleep): void {
  if (row.status === 'waiting') {
    mustEqual(row.due, typeof ms === 'number' ? { inMs: ms } : { at: ms.until }, `end of ${what}`)
    return
  }
  mustEqual([row.status, row.output], ['completed', null], `end of ${what}`)
  judgeTime(writing, row, what)
}

/** A wait that ended by itself. */
function judgeTime({ model, run }: Writing, { name }: StepWrite, what: string): void {
  const dueAt = run.liveSteps.get(name)?.dueAt ?? null
  must(dueAt !== null, () => `${what} ended by itself, and has no time recorded`)
  must(model.mayHaveCome(dueAt ?? 0), () => `${what} ended before its time, ${dueAt}`)
}

function judgeWaitFor(writing: Writing, { row, what, used }: Judged, { signal, timeout }: ScriptWaitFor): void {
  const { run, commit } = writing
  mustEqual(row.waitName, signal, `signal of ${what}`)
  if (row.status === 'waiting') {
    mustEqual(row.due, timeout === undefined ? null : { inMs: timeout }, `end of ${what}`)
    return
  }
  if (row.status === 'failed') {
    mustEqual(row.errorDetail?.code, 'TIMEOUT', `error of ${what}`)
    judgeTime(writing, row, what)
    return
  }
  const taken = run.unread.find(
    ({ position, name, payload }) =>
      name === signal && payload === row.output && commit.consumedSignals.includes(position) && !used.has(position),
  )
  must(taken !== undefined, () => `${what} got ${row.output}, and used up no such signal`)
  if (taken !== undefined) used.add(taken.position)
}

/** Of each name the oldest first. */
function judgeOrder(run: ModelRun, consumed: readonly number[]): void {
  for (const { position, name } of run.unread) {
    if (consumed.includes(position)) continue
    const overtaking = run.unread.find(
      (other) => other.name === name && other.position > position && consumed.includes(other.position),
    )
    must(
      overtaking === undefined,
      () => `signal ${overtaking?.position} of ${run.wanted.id} was used up before ${position}, which came first`,
    )
  }
}

function judgeTrigger({ run }: Writing, { row, what }: Judged, { job, script }: ScriptChild): void {
  const { child } = row
  const found = [row.status, child?.jobName, child?.payload, child?.parentRunId]
  mustEqual(found, ['completed', job, JSON.stringify(script), run.wanted.id], `child of ${what}`)
}

function judgeChild({ model, run }: Writing, { row, what }: Judged, { name }: ScriptChild): void {
  const id: unknown = JSON.parse(run.liveSteps.get(name)?.output ?? 'null')
  mustEqual(row.waitName, id, `child of ${what}`)
  if (row.status === 'waiting') {
    mustEqual(row.due, null, `end of ${what}`)
    return
  }
  const childId = String(id)
  const ends = model.ends.get(childId) ?? []
  const has = (...statuses: readonly string[]) => ends.some(({ status }) => statuses.includes(status))
  if (row.status === 'completed') {
    const isRight = ends.some(({ status, output }) => status === 'completed' && output === row.output)
    must(isRight, () => `${what} got ${row.output}, which is not what ${childId} completed with`)
    return
  }
  const code = row.errorDetail?.code
  const isOther = model.runs.get(childId)?.wanted.parentRunId !== run.wanted.id
  const isRight =
    (code === 'RUN_FAILED' && has('failed', 'timed_out')) ||
    (code === 'CANCELLED' && has('cancelled')) ||
    (code === 'NOT_FOUND' && model.removed.has(childId)) ||
    (code === 'INVALID_OPTION' && isOther)
  must(isRight, () => `${what} failed with "${row.error}", which is not what became of ${childId}`)
}
