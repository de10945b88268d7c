import type { RunCommit, StepWrite } from '../../port'
import { type ModelRun, type ModelStep, textsOf, waitingRows } from './model-run'
import { must } from './violation'

/** What a commit brings beside its rows, its children and its outcome. */
export function applyContents(run: ModelRun, commit: RunCommit): void {
  for (const position of commit.consumedSignals) {
    const isUnread = run.unread.some((signal) => signal.position === position)
    must(isUnread, () => `signal ${position} of ${run.wanted.id} was used up, and is not there`)
    run.unread = run.unread.filter((signal) => signal.position !== position)
  }
  run.commitNo = commit.commitNo
  if (commit.hasProgressed) run.crashes = 0
  run.stepIndex = commit.currentStepIndex ?? run.stepIndex
  run.progress = commit.progress === null ? run.progress : JSON.stringify(commit.progress)
  run.logs += commit.logs.length
  run.events.push(...textsOf(commit.events))
}

export function writeStep(run: ModelRun, wanted: StepWrite, now: number): void {
  const live = run.liveSteps.get(wanted.name)
  const what = () => `step ${wanted.name} of ${run.wanted.id}`
  must(live === undefined || live.id === wanted.id, () => `${what()} has two live rows`)
  must(live?.status !== 'completed', () => `${what()} was written again after it completed`)
  const step: ModelStep = { ...wanted, dueAt: live?.dueAt ?? dueAtOf(wanted, now) }
  if (step.status === 'failed') {
    run.liveSteps.delete(step.name)
    run.failedSteps.push(step)
  } else run.liveSteps.set(step.name, step)
}

/** As a retry by hand leaves it, but for its status. */
export function beginAnew(run: ModelRun): void {
  Object.assign(run, {
    attemptBase: run.attempt,
    attempt: run.attempt + 1,
    epoch: run.epoch + 1,
    token: '',
    crashes: 0,
    isSpent: false,
  })
  for (const { name } of waitingRows(run)) run.liveSteps.delete(name)
  Object.assign(run, { output: null, error: null, deadlineAt: null, finishedAt: null, cancelAsked: false })
}

function dueAtOf({ due }: StepWrite, now: number): number | null {
  if (due === null) return null
  return 'at' in due ? Date.parse(due.at) : now + Math.floor(due.inMs)
}
