import { must, mustEqual } from '../simulation/violation'
import type { BookedTask, Ledger } from './ledger'
import type { QueueProcess } from './queue-process'

export interface Start {
  readonly process: QueueProcess
  readonly task: BookedTask
  readonly attempt: number
  readonly ledger: Ledger
}

/** Whether this attempt may begin now, here. */
export function judgeStart(start: Start): void {
  judgeTask(start)
  judgeProcess(start)
  judgeLimits(start)
}

function judgeTask({ process, task, attempt }: Start): void {
  const { id, state, notBefore, kind, current } = task
  const isFree = current === null || current.over !== null
  must(isFree, () => `${id} begins in process ${process.number} while process ${current?.process.number} executes it`)
  must(state === 'queued' || state === 'retry_scheduled', () => `${id} begins, and is ${state}`)
  const earlyMs = notBefore - process.clock.now()
  must(earlyMs <= 0, () => `${id} begins ${earlyMs} ms before its time`)
  must(task.calls < kind.maxAttempts, () => `${id} begins once more after ${task.calls} of ${kind.maxAttempts} calls`)
  mustEqual(attempt, task.spent + 1, `the attempt of ${id} that begins`)
}

function judgeProcess({ process, task }: Start): void {
  const { number, isStarted, isDraining, budgetUntil, clock, paused } = process
  const mayBegin = isStarted || (isDraining && clock.monotonic() <= budgetUntil)
  must(mayBegin, () => `${task.id} begins in process ${number}, which is not started`)
  must(!paused.has(task.kind.type), () => `${task.id} begins in process ${number}, where its type is paused`)
}

function judgeLimits({ process, task, ledger }: Start): void {
  const { number, clock, concurrency } = process
  const { kind } = task
  const others = ledger.executing(process)
  must(others.length < concurrency, () => `${task.id} begins in process ${number} beside ${others.length} others`)
  const alike = others.filter((other) => other.kind === kind).length
  const most = kind.concurrency ?? concurrency
  must(alike < most, () => `${task.id} begins in process ${number} beside ${alike} of its type; ${most} are the most`)
  if (kind.rateLimit === null) return
  const { max, per } = kind.rateLimit
  const since = clock.monotonic() - per
  const begun = (process.starts.get(kind.type) ?? []).filter((at) => at > since).length
  must(begun < max, () => `${task.id} begins in process ${number} as one of ${begun + 1} of its type in ${per} ms`)
}
