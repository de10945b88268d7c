import type { TaskEvent, TaskEventType } from '../../queue/index'
import type { CommitAnswer, Outcome, RunCommit, RunRecord } from '../../port'
import type { BookedTask, Ledger } from './ledger'
import type { Done } from './mortal-storage'
import type { QueueProcess } from './queue-process'
import type { Witness } from './witness'

export interface DeathParams {
  readonly process: QueueProcess
  readonly ledger: Ledger
  readonly witness: Witness
}

/** A call of a process that died before it could say what came of it. */
export interface LastDeed extends DeathParams {
  readonly done: Done
}

/** What has no attempt left is claimed in silence, to be dead: only that shows it. */
export function bookUnsent({ process, ledger, witness }: DeathParams, commits: readonly RunCommit[]): void {
  for (const { lease, outcome } of commits) {
    const task = ledger.tasks.get(lease.runId)
    if (task === undefined || outcome?.kind !== 'fail' || !isOfCrashes(outcome)) continue
    witness.note('unsent end of what has no attempt left')
    witness.begin(process, task, task.spent)
  }
}

/** Books what was done, as if it had been said. */
export function bookLastDeed(deed: LastDeed): void {
  const { done } = deed
  if (done.name === 'claim') for (const run of done.answer) bookClaim(deed, run)
  else if (done.name === 'recover') for (const run of done.answer) bookRecovery(deed, run)
  else for (const [index, commit] of done.params.entries()) bookCommit(deed, commit, done.answer[index])
}

/** The task was about to begin: that counts as an attempt, if it had one left. */
function bookClaim(deed: LastDeed, { id }: RunRecord): void {
  const { process, ledger, witness } = deed
  const task = ledger.tasks.get(id)
  if (task === undefined) return
  const hasOneLeft = task.spent < task.kind.maxAttempts
  witness.note(hasOneLeft ? 'unheard claim' : 'unheard claim of what has no attempt left')
  if (hasOneLeft) say(deed, task, { type: 'started', attempt: task.spent + 1 })
  else witness.begin(process, task, task.spent)
  // Not that anybody called its handler.
  if (hasOneLeft) task.calls -= 1
}

function bookCommit(deed: LastDeed, { lease, outcome }: RunCommit, answer: CommitAnswer | undefined): void {
  const task = deed.ledger.tasks.get(lease.runId)
  if (task === undefined || outcome === null || answer?.kept !== true) return
  const { process, witness } = deed
  witness.note(`unheard ${outcome.kind}`)
  const { attempt = 0, startedAt = 0 } = task.current ?? {}
  const ended = { attempt, durationMs: process.clock.monotonic() - startedAt }
  if (outcome.kind === 'complete') say(deed, task, { type: 'succeeded', ...ended })
  if (outcome.kind === 'release') say(deed, task, { type: 'enqueued', cause: 'released' })
  if (outcome.kind !== 'fail' && outcome.kind !== 'retryLater') return
  if (!isOfCrashes(outcome)) say(deed, task, { type: 'failed', ...ended, error: outcome.error })
  if (outcome.kind === 'fail') say(deed, task, { type: 'dead', attempts: task.spent, error: outcome.error })
  else {
    const { delayMs, error } = outcome
    const nextRunAt = new Date(process.clock.now() + delayMs).toISOString()
    say(deed, task, { type: 'retry_scheduled', attempt, error, backoffMs: delayMs, nextRunAt })
  }
}

function bookRecovery(deed: LastDeed, { id, status, error, attempt, attemptBase, crashCount }: RunRecord): void {
  const task = deed.ledger.tasks.get(id)
  if (task === undefined) return
  deed.witness.note('unheard recovery')
  const attempts = Math.min(attempt - attemptBase - 1 + crashCount, task.kind.maxAttempts)
  if (status === 'failed') say(deed, task, { type: 'dead', attempts, error: error ?? '' })
  else say(deed, task, { type: 'enqueued', cause: 'recovered' })
}

function isOfCrashes(outcome: Extract<Outcome, { kind: 'fail' | 'retryLater' }>): boolean {
  return outcome.detail.code === 'crash_limit'
}

type Said = {
  [Type in TaskEventType]: Omit<TaskEvent<Type>, 'taskId' | 'taskType' | 'timestamp'>
}[TaskEventType]

function say({ process, witness }: LastDeed, { id, kind }: BookedTask, event: Said): void {
  const timestamp = new Date(process.clock.now()).toISOString()
  witness.hear(process, { ...event, taskId: id, taskType: kind.type, timestamp } as TaskEvent)
}
