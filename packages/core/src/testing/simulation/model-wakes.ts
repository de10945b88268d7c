import type { Outcome } from '../../port'
import { earliest, ENDED } from './model-queries'
import { type ModelRun, waitingRows } from './model-run'
import { must } from './violation'

interface Suspending {
  readonly outcome: Extract<Outcome, { kind: 'suspend' }>
  /** When its waits end by themselves. */
  readonly end: number | null
  readonly now: number
}

/** When a run is due that leaves for its waits. */
export function suspendedUntil(run: ModelRun, { outcome, end, now }: Suspending): number | null {
  const { wakesSeen, wakesWanted, restMs } = outcome
  run.wakesWanted = wakesWanted
  run.awaits = outcome.steps
  run.restSince = now
  run.restUntil = restMs === 0 ? null : now + Math.floor(restMs)
  if (run.wakes === wakesSeen) return end
  return run.lastSignal > wakesSeen ? run.createdAt : wokenAt(run, end, now)
}

export function wakeByChild(run: ModelRun, now: number): void {
  run.wakes += 1
  if (isSuspended(run)) run.availableAt = wokenAt(run, run.availableAt, now)
}

/** Whatever an engine said about how many wakes it takes: with its last child a run is due. */
export function mustNotRest(runs: ReadonlyMap<string, ModelRun>, run: ModelRun): void {
  if (!isSuspended(run)) return
  const awaited = waitingRows(run).filter(({ name }) => run.awaits.includes(name))
  const children = awaited.flatMap(({ kind, waitName }) => (kind === 'child' ? [runs.get(waitName ?? '')] : []))
  if (children.length === 0 || children.some((child) => child?.finishedAt === null)) return
  must(run.availableAt === run.createdAt, () => {
    return `${run.wanted.id} waits until ${run.availableAt}, although all its children have ended (${run.wakes} wakes of ${run.wakesWanted})`
  })
}

export function wakeBySignal(run: ModelRun): void {
  run.wakes += 1
  run.lastSignal = run.wakes
  if (isSuspended(run)) run.availableAt = run.createdAt
}

/** Answers whether that is new. A run that has ended forgets those that have ended too. */
export function awaitAlso(runs: ReadonlyMap<string, ModelRun>, run: ModelRun, runId: string): boolean {
  if (run.alsoAwaitedBy.has(runId)) return false
  const hasEnded = (id: string) => ENDED.includes(runs.get(id)?.status ?? 'cancelled')
  if (ENDED.includes(run.status)) for (const id of run.alsoAwaitedBy) if (hasEnded(id)) run.alsoAwaitedBy.delete(id)
  run.alsoAwaitedBy.add(runId)
  return true
}

/** Who waits for many rests, unless they have all ended. */
function wokenAt(run: ModelRun, otherwise: number | null, now: number) {
  const { createdAt, wakes, wakesWanted, restSince, restUntil } = run
  if (restUntil === null || restUntil <= now || now < restSince || wakes >= wakesWanted) return createdAt
  return earliest([otherwise, restUntil])
}

function isSuspended({ status, waitingFor }: ModelRun): boolean {
  return status === 'pending' && waitingFor === 'steps'
}
